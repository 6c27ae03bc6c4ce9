package stories

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// exec runs statements that no change comes of, or whose changes the story
// expects by hand.
func (s *story) exec(statements ...string) {
	s.Helper()
	for _, sql := range statements {
		if _, err := s.db.Exec(s.Context(), sql); err != nil {
			s.Fatalf("%s: %v", sql, err)
		}
	}
}

// refuses makes sure that Postgres refuses a statement, with an error that says
// so.
func (s *story) refuses(says, sql string) {
	s.Helper()
	if _, err := s.db.Exec(s.Context(), sql); err == nil || !strings.Contains(err.Error(), says) {
		s.Fatalf("%s: the error is %v, want one that says %q", sql, err, says)
	}
}

func ask[T any](s *story, sql string, args ...any) T {
	s.Helper()
	var v T
	if err := s.db.QueryRow(s.Context(), sql, args...).Scan(&v); err != nil {
		s.Fatalf("%s: %v", sql, err)
	}
	return v
}

// begin, commit and rollback put a transaction around what is told between
// them.
func (s *story) begin() {
	s.Helper()
	s.exec("BEGIN")
	s.inside = true
}

func (s *story) commit() {
	s.Helper()
	s.exec("COMMIT")
	s.inside, s.told, s.open = false, append(s.told, s.open...), nil
}

func (s *story) rollback() {
	s.Helper()
	s.exec("ROLLBACK")
	s.inside, s.open = false, nil
}

// prepare leaves the transaction to commitPrepared.
func (s *story) prepare(gid string) (lines []string) {
	s.Helper()
	s.exec("PREPARE TRANSACTION '" + gid + "'")
	lines, s.inside, s.open = s.open, false, nil
	return lines
}

func (s *story) commitPrepared(gid string, lines []string) {
	s.Helper()
	s.exec("COMMIT PREPARED '" + gid + "'")
	s.told = append(s.told, lines...)
}

// expect notes a change. An image that does not exist is the empty text.
func (s *story) expect(operation, table, before, after string, unchanged ...string) {
	l := line(operation, table, before, after, unchanged)
	if s.inside {
		s.open = append(s.open, l)
	} else {
		s.told = append(s.told, l)
	}
}

// line is a change as the stories compare it.
func line(operation, table, before, after string, unchanged []string) string {
	for _, image := range []*string{&before, &after} {
		if *image == "" {
			*image = "-"
		}
	}
	l := strings.Join([]string{operation, table, before, after}, "  ")
	if len(unchanged) > 0 {
		l += "  unchanged " + strings.Join(unchanged, ", ")
	}
	return l
}

// place is where one version of a row is.
type place struct{ leaf, ctid string }

// places runs a query that gives tableoid::regclass and ctid.
func (s *story) places(sql string) []place {
	s.Helper()
	rows, err := s.db.Query(s.Context(), sql)
	if err != nil {
		s.Fatalf("%s: %v", sql, err)
	}
	found, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (p place, err error) { return p, r.Scan(&p.leaf, &p.ctid) })
	if err != nil || len(found) == 0 {
		s.Fatalf("%s: it concerns %d rows, error %v", sql, len(found), err)
	}
	return found
}

const returning = " RETURNING r.tableoid::regclass::text, r.ctid::text"

// insert tells INSERT INTO table <rest>.
func (s *story) insert(table, rest string) {
	s.Helper()
	for _, p := range s.places("INSERT INTO " + table + " AS r " + rest + returning) {
		s.expect("insert", s.published(p.leaf), "", s.image(p))
	}
}

// update tells UPDATE table SET set WHERE where.
func (s *story) update(table, set, where string) {
	s.Helper()
	was := s.places("SELECT r.tableoid::regclass::text, r.ctid::text FROM " + table + " r WHERE " + where + " ORDER BY r.tableoid, r.ctid")
	old := make([]string, len(was))
	for i, p := range was {
		old[i] = s.image(p)
	}
	is := s.places("UPDATE " + table + " AS r SET " + set + " WHERE " + where + returning)
	if len(was) != len(is) {
		s.Fatalf("%d rows were updated, want %d", len(is), len(was))
	}
	for i, p := range is {
		after := s.image(p)
		if was[i].leaf != p.leaf {
			s.expect("delete", s.published(was[i].leaf), s.identity(was[i].leaf, old[i]), "")
			s.expect("insert", s.published(p.leaf), "", after)
			continue
		}
		before := s.identity(p.leaf, old[i])
		if s.identityKind(p.leaf) != "f" && before == s.identity(p.leaf, after) {
			before = "" // no column of the key has changed
		}
		s.expect("update", s.published(p.leaf), before, after)
	}
}

// remove tells DELETE FROM table WHERE where.
func (s *story) remove(table, where string) {
	s.Helper()
	for _, p := range s.places("SELECT r.tableoid::regclass::text, r.ctid::text FROM " + table + " r WHERE " + where + " ORDER BY r.tableoid, r.ctid") {
		s.expect("delete", s.published(p.leaf), s.identity(p.leaf, s.image(p)), "")
	}
	s.exec("DELETE FROM " + table + " r WHERE " + where)
}

// truncate tells a TRUNCATE, which takes tables along in this order.
func (s *story) truncate(rest string, tables ...string) {
	s.Helper()
	s.exec("TRUNCATE " + rest)
	for _, table := range tables {
		s.expect("truncate", table, "", "")
	}
}

// emit tells a logical message. One that is not transactional comes at once,
// whatever becomes of the transaction.
func (s *story) emit(transactional bool, prefix, content string) {
	s.Helper()
	ask[string](s, "SELECT pg_logical_emit_message($1, $2, $3::text)::text", transactional, prefix, content)
	if !s.messages {
		return
	}
	after := ask[string](s, "SELECT to_json(m)::text FROM (SELECT $1::text AS prefix, $2::text AS content) m", prefix, content)
	if transactional {
		s.expect("message", "", "", after)
	} else {
		s.told = append(s.told, line("message", "", "", after, nil))
	}
}

// published is the table that a leaf's rows are published as, by the name that
// Postgres gives it.
func (s *story) published(leaf string) string {
	s.Helper()
	if !s.viaRoot {
		return leaf
	}
	return ask[string](s, "SELECT coalesce(pg_partition_root($1::regclass), $1::regclass)::text", leaf)
}

// image is to_json of a row as it is published.
func (s *story) image(p place) string {
	s.Helper()
	table := s.published(p.leaf)
	row := ask[string](s, "SELECT to_json(r)::text FROM "+table+" r WHERE r.tableoid = $1::regclass AND r.ctid = $2::tid", p.leaf, p.ctid)
	if only, ok := s.only[table]; ok {
		return s.project(row, only)
	}
	return row
}

// identityKind is a table's replica identity: d, n, f or i.
func (s *story) identityKind(table string) string {
	s.Helper()
	return ask[string](s, "SELECT relreplident::text FROM pg_class WHERE oid = $1::regclass", table)
}

// identity is what Postgres sends of a row's old image.
func (s *story) identity(table, row string) string {
	s.Helper()
	if s.identityKind(table) == "f" {
		return row
	}
	key := ask[string](s, `SELECT coalesce(json_agg(a.attname), '[]')::text FROM pg_class c
		JOIN pg_index i ON i.indrelid = c.oid AND CASE c.relreplident WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident END
		JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey) WHERE c.oid = $1::regclass`, table)
	var columns []string
	if err := json.Unmarshal([]byte(key), &columns); err != nil {
		s.Fatal(err)
	}
	return s.project(row, columns)
}

// project leaves only some columns in a row.
func (s *story) project(row string, columns []string) string {
	s.Helper()
	d := json.NewDecoder(strings.NewReader(row))
	if _, err := d.Token(); err != nil {
		s.Fatalf("row %s: %v", row, err)
	}
	var kept []string
	for d.More() {
		at := d.InputOffset()
		name, err := d.Token()
		var value json.RawMessage
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			s.Fatalf("row %s: %v", row, err)
		}
		if slices.Contains(columns, fmt.Sprint(name)) {
			kept = append(kept, strings.TrimPrefix(row[at:d.InputOffset()], ","))
		}
	}
	return "{" + strings.Join(kept, ",") + "}"
}
