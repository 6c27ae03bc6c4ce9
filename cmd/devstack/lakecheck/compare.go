package lakecheck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/jackc/pgx/v5"
)

// maxDifferences bounds how many differences of a table are spelled out.
const maxDifferences = 10

// pinned are the settings that Tidemark pins and that to_json depends on.
const pinned = `set local timezone = 'UTC'; set local datestyle = 'ISO, YMD'; set local intervalstyle = 'postgres';
	set local extra_float_digits = 3; set local bytea_output = 'hex'; set local lc_monetary = 'C'`

// Compare replays each table's rows in the lake and holds the outcome against
// the table as it stands in Postgres, as to_json prints it. It returns a line
// for each difference. The tables must have been empty when the pipeline began,
// and have primary keys.
func (l *Lake) Compare(ctx context.Context, conn *pgx.Conn, tables ...string) ([]string, error) {
	var lines []string
	for _, t := range tables {
		found, err := l.compareTable(ctx, conn, t)
		if err != nil {
			return nil, fmt.Errorf("compare %s with the lake: %w", t, err)
		}
		lines = append(lines, found...)
	}
	return lines, nil
}

func (l *Lake) compareTable(ctx context.Context, conn *pgx.Conn, table string) ([]string, error) {
	key, err := primaryKey(ctx, conn, table)
	if err != nil {
		return nil, err
	}
	state, err := l.Replay(ctx, table, key)
	if err != nil {
		// The stream itself does not make sense, which is what is looked for.
		return []string{fmt.Sprintf("%s: %v", table, err)}, nil
	}
	var lines []string
	add := func(format string, args ...any) {
		if len(lines) < maxDifferences {
			lines = append(lines, table+": "+fmt.Sprintf(format, args...))
		}
	}
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	if _, err := tx.Exec(ctx, pinned); err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, "select to_json(t)::text from "+table+" t")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		var want image
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			return nil, err
		}
		k, err := want.key(key)
		if err != nil {
			return nil, err
		}
		got, ok := state[k]
		if !ok {
			add("row %s is in Postgres and not in the lake", k)
			continue
		}
		delete(state, k)
		for c := range want {
			if !same(want[c], got[c]) {
				add("row %s, column %s: Postgres has %s, the lake %s", k, c, want[c], got[c])
			}
		}
		for c := range got {
			if _, ok := want[c]; !ok {
				add("row %s: the lake has a column %s that Postgres has not", k, c)
			}
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	for k := range state {
		add("row %s is in the lake and not in Postgres", k)
	}
	return lines, nil
}

// primaryKey names the columns of a table's primary key, in its order.
func primaryKey(ctx context.Context, conn *pgx.Conn, table string) ([]string, error) {
	rows, err := conn.Query(ctx, `
		select a.attname from pg_index i
		cross join unnest(i.indkey::int2[]) with ordinality k(attnum, n)
		join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
		where i.indrelid = $1::text::regclass and i.indisprimary order by k.n`, table)
	if err != nil {
		return nil, err
	}
	key, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil && len(key) == 0 {
		err = errors.New("it has no primary key")
	}
	return key, err
}

// same compares two JSON values: numbers by their digits, objects without order
// and spaces.
func same(want, got json.RawMessage) bool {
	if string(want) == string(got) {
		return true
	}
	w, werr := decode(want)
	g, gerr := decode(got)
	if werr != nil || gerr != nil {
		return false
	}
	return reflect.DeepEqual(w, g)
}

func decode(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}
