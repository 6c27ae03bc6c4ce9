package e2e

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/duckdb/duckdb-go/v2" // the driver

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
)

// What the documentation has where readers put something of their own.
const (
	documentedLake = "s3://my-lake/shop/"
	documentedDay  = "2026/11/30/"
	documentedTime = "2026-11-30 12:00:00+00"
	// The lake of those who get started is a folder, and beside it stands a copy
	// of the table as it was before.
	documentedFolder = "/home/ann/lake/shop/"
	documentedCopy   = "/home/ann/orders.csv"
)

// documentedQuery is an SQL block of a file in Markdown. Its name is the comment
// that it begins with, if any.
type documentedQuery struct{ name, sql string }

// documentedQueries are the SQL blocks of a file that are for DuckDB: all that do
// not say that they are another's.
func documentedQueries(t *testing.T, path string) []documentedQuery {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var found []documentedQuery
	for _, m := range regexp.MustCompile("(?s)\n```sql\n(?:-- ([^\n]*)\n)?(.*?)\n```\n").FindAllStringSubmatch(string(text), -1) {
		found = append(found, documentedQuery{m[1], m[2]})
	}
	if len(found) == 0 {
		t.Fatalf("%s has no SQL", path)
	}
	return found
}

// Whatever SQL the documentation shows to readers of a lake runs in DuckDB, and
// gives what it says.
func TestDocumentedQueriesGiveWhatTheySay(t *testing.T) {
	h := harness.New(t, harness.Options{Postgres: versions[0], NoSetup: true, TemporalMemory: true, Settings: pipeline.Settings{
		"segment.max_age": "100ms", "postgres.tables": []string{"public.orders"},
	}})
	h.SQL(`create table public.orders (id bigint primary key, status text, total numeric, placed_at timestamptz, details jsonb, note text)`)
	h.SQL(`alter table public.orders alter column note set storage external`)
	h.SQL(`set timezone = 'UTC'`)
	h.Setup()
	p := h.Run()
	p.WaitStreaming()
	h.SQL(`insert into public.orders values (2, 'old', 1, null, null, null), (9, 'old', 1, null, null, null)`)
	h.SQL(`truncate public.orders`)
	h.SQL(`insert into public.orders values (1, 'new', 19.90, '2026-11-30 10:00:00.5+00', '{"items": [{"sku": "A-1"}]}', repeat('long', 2000))`)
	h.SQL(`insert into public.orders values (2, 'big', 12345678901234567890.0123456789, null, '{}', null)`)
	h.SQL(`insert into public.orders values (3, 'hold', 0.5, null, null, '"total":7')`)
	h.WaitAck()
	// In another object, so that nothing has the note.
	h.SQL(`update public.orders set status = 'paid' where id = 1`)
	h.SQL(`update public.orders set id = 4 where id = 2`)
	h.SQL(`delete from public.orders where id = 3`)
	h.WaitAck()
	// Rows as their last images have them: that of order 1 lacks its note.
	const state = `select string_agg(id || '|' || case when id = 1
			then (select to_json(x) from (select id, status, total, placed_at, details) x)::text else to_json(o)::text end, chr(10) order by id)
		from public.orders o`
	stood, at := harness.Scalar[string](h, state), harness.Scalar[time.Time](h, `select clock_timestamp()`)
	// With both images of one key at one position.
	h.SQL(`alter table public.orders replica identity full`)
	h.SQL(`update public.orders set total = 0 where id = 4`)
	h.SQL(`insert into public.orders values (5, 'new', 1e-10, null, null, 'x')`)
	h.WaitAck()
	stands := harness.Scalar[string](h, state)
	p.Stop()

	note := `"` + strings.Repeat("long", 2000) + `"`
	want := map[string]string{
		"orders as they stood at a time": stood,
		"a column through updates that did not send it": lines("2|null", "9|null", "1|"+note, "2|null", `3|"\"total\":7"`, "1|"+note,
			"4|null", "4|null", `5|"x"`),
		"all that happened to order 2": lines(
			`insert|-|{"id":2,"status":"old","total":1,"placed_at":null,"details":null,"note":null}`,
			`insert|-|{"id":2,"status":"big","total":12345678901234567890.0123456789,"placed_at":null,"details":{},"note":null}`,
			`update|{"id":2}|{"id":4,"status":"big","total":12345678901234567890.0123456789,"placed_at":null,"details":{},"note":null}`),
		"when the status of an order changed, and to what": lines("2|old", "9|old", "1|new", "2|big", "3|hold", "1|paid", "4|big", "5|new"),
		"rows per day":         lines("public.orders|delete|1", "public.orders|insert|6", "public.orders|truncate|1", "public.orders|update|3"),
		"values by their type": lines("1|19.90|2026-11-30 10:00:00.5+00|A-1", "5|0.00|-|-"),
		"a numeric with all its digits": lines("2|1.0000000000", "9|1.0000000000", "1|19.9000000000", "2|12345678901234567890.0123456789",
			"3|0.5000000000", "5|0.0000000001"),
		"positions that are there more than once":   "",
		"objects that follow one that is not there": "",
	}
	db := newDuckDB(t)
	// What Athena has: the table that docs/format.md declares, and its function.
	db.rows(t, `CREATE VIEW shop_changes AS SELECT *, regexp_extract(filename, '\d{4}/\d\d/\d\d') AS day FROM read_parquet('`+h.Lake().Folder()+`/*/*/*/*.parquet', filename = true)`)
	db.rows(t, `CREATE MACRO json_extract_scalar(j, p) AS json_extract_string(j, p)`)
	ours := func(sql string, moment time.Time) string {
		return strings.NewReplacer(documentedLake+documentedDay, h.Lake().Folder()+"/*/*/*/", documentedLake, h.Lake().Folder()+"/",
			documentedTime, moment.UTC().Format("2006-01-02 15:04:05.999999+00")).Replace(sql)
	}
	for _, q := range documentedQueries(t, "../../../docs/format.md") {
		got := db.rows(t, ours(q.sql, at))
		if q.name == "the latest days of a table, in Athena" {
			want[q.name] = got // times of commit, but one row for each change
			if n := strings.Count(got, "\n"); n != 10 {
				t.Errorf("%s: %d rows, want 11", q.name, n+1)
			}
		}
		expected, judged := want[q.name]
		if judged && got != expected {
			t.Errorf("%s:\n%.3000s\nwant\n%.3000s", q.name, got, expected)
		}
		if !judged && !strings.HasPrefix(q.sql, "CREATE OR REPLACE VIEW") {
			t.Errorf("nothing says what the query %q gives", q.name)
		}
		if strings.Contains(q.sql, documentedTime) {
			if got := db.rows(t, ours(q.sql, at.AddDate(1, 0, 0))); got != stands {
				t.Errorf("%s, today:\n%s\nwant\n%s", q.name, got, stands)
			}
		}
		delete(want, q.name)
	}
	for name := range want {
		t.Errorf("docs/format.md has no query %q any more", name)
	}
	for _, q := range documentedQueries(t, "../../../README.md") {
		if got := strings.Count(db.rows(t, ours(q.sql, at)), "\n"); got != 10 {
			t.Errorf("%s\ngives %d rows, want 11", q.sql, got+1)
		}
	}
	before := filepath.Join(t.TempDir(), "orders.csv")
	if err := os.WriteFile(before, []byte("id,image\n2,{}\n77,{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	first := strings.NewReplacer(documentedFolder+documentedDay, documentedLake+documentedDay, documentedFolder, documentedLake, documentedCopy, before)
	for _, q := range documentedQueries(t, "../../../docs/getting-started.md") {
		got := db.rows(t, ours(first.Replace(q.sql), at))
		if got == "" || strings.Contains(q.sql, documentedCopy) && (!strings.Contains(got, "77|{}") || strings.Contains(got, "2|{}")) {
			t.Errorf("%s\ngives\n%s", q.sql, got)
		}
	}
}

func lines(l ...string) string { return strings.Join(l, "\n") }

// duckDB is DuckDB as its shell is: what one statement makes, the next has.
type duckDB struct{ *sql.DB }

func newDuckDB(t *testing.T) duckDB {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), "SET timezone = 'UTC'"); err != nil {
		t.Fatal(err)
	}
	return duckDB{db}
}

// rows gives a line for each row: its values as DuckDB prints them, with bars
// between them and a dash for NULL. Columns that differ from run to run are left
// out.
func (db duckDB) rows(t *testing.T, statement string) string {
	t.Helper()
	if query := strings.TrimSuffix(statement, ";"); !strings.HasPrefix(query, "CREATE") {
		statement = "SELECT COLUMNS(*)::VARCHAR FROM (" + query + ")"
	}
	found, err := db.QueryContext(t.Context(), statement)
	if err != nil {
		t.Fatalf("%s\n%v", statement, err)
	}
	defer found.Close()
	columns, err := found.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for found.Next() {
		values, targets := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := found.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		var cells []string
		for i, v := range values {
			if slices.Contains([]string{"commit_time", "day", "xid"}, columns[i]) {
				continue
			}
			if v == nil {
				v = "-"
			}
			cells = append(cells, fmt.Sprint(v))
		}
		out = append(out, strings.Join(cells, "|"))
	}
	if err := found.Err(); err != nil {
		t.Fatalf("%s\n%v", statement, err)
	}
	return strings.Join(out, "\n")
}
