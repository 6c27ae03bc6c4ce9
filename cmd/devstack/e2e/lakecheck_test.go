package e2e

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/lakecheck"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/tally"
)

// What the checks are there to see, they see: in lakes written by hand, each
// with one thing wrong.
func TestChecksSeeWhatIsWrongWithALake(t *testing.T) {
	pg, err := stack.NewPostgres(stack.PostgresOptions{Version: 15})
	if err != nil {
		t.Fatal(err)
	}
	if err := pg.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pg.Close(); err != nil {
			t.Error(err)
		}
	})
	conn := connect(t, &stack.Stack{Postgres: pg})
	if _, err := conn.Exec(t.Context(), `
		create table t (id bigint primary key, v text, n numeric, big text);
		insert into t values (1, 'one', 1.10, 'B'), (3, null, 'NaN', null)`); err != nil {
		t.Fatal(err)
	}
	sound := []string{
		row(10, 0, "insert", "", `{"id":1,"v":"was","n":1,"big":"B"}`),
		row(10, 1, "insert", "", `{"id":2,"v":"two","n":2,"big":null}`),
		row(20, 0, "update", "", `{"n":1.10,"id":1,"v":"one"}`, "big"),
		row(20, 1, "update", `{"id":2}`, `{"id":3,"v":"two","n":2,"big":null}`),
		row(30, 0, "update", "", `{"id":3,"v":null,"n":"NaN","big":null}`),
		row(30, 1, "insert", "", `{"id":4,"v":"","n":0,"big":null}`),
		row(40, 0, "delete", `{"id":4}`, ""),
	}
	wrong := func(i int, r string) []string {
		rows := append([]string(nil), sound...)
		rows[i] = r
		return rows
	}
	for _, c := range []struct {
		name                              string
		rows                              []string
		rowsDiffer, repeated, wrongTables string
	}{
		{name: "sound", rows: sound},
		{name: "an insert is missing", rows: sound[1:], rowsDiffer: "public.t insert: want 3 rows, got 2 (-1)", wrongTables: "it is not there"},
		{name: "an update is missing", rows: append(append([]string(nil), sound[:2]...), sound[3:]...), rowsDiffer: "public.t update: want 3 rows, got 2 (-1)", wrongTables: `column v: Postgres has "one", the lake "was"`},
		{name: "a delete is missing", rows: sound[:6], rowsDiffer: "public.t delete: want 1 rows, got 0 (-1)", wrongTables: "row 4, is in the lake and not in Postgres"},
		{name: "a row is there twice", rows: append(append([]string(nil), sound...), sound[4]), rowsDiffer: "public.t update: want 3 rows, got 4 (+1)", repeated: "position 00000001-000000000000001E-0000000000 is there 2 times"},
		{name: "a number has lost a digit", rows: wrong(2, row(20, 0, "update", "", `{"n":1.1,"id":1,"v":"one"}`, "big")), wrongTables: "column n: Postgres has 1.10, the lake 1.1"},
		{name: "an unchanged value is not named", rows: wrong(2, row(20, 0, "update", "", `{"n":1.10,"id":1,"v":"one"}`)), wrongTables: "column big"},
		{name: "a null is a text", rows: wrong(4, row(30, 0, "update", "", `{"id":3,"v":"null","n":"NaN","big":null}`)), wrongTables: `column v: Postgres has null, the lake "null"`},
		{name: "rows are in the wrong order", rows: wrong(0, row(15, 0, "insert", "", `{"id":3,"v":"was","n":1,"big":"B"}`)), wrongTables: "public.t"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			writeLake(t, filepath.Join(dir, "2024/02/29"), c.rows)
			l, err := lakecheck.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			want := tally.Counts{{Table: "public.t", Operation: "insert"}: 3, {Table: "public.t", Operation: "update"}: 3, {Table: "public.t", Operation: "delete"}: 1}
			got, err := l.Rows(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			expect(t, "rows", want.Differences(got), c.rowsDiffer)
			lines, err := l.Repeated(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			expect(t, "repeated positions", lines, c.repeated)
			if c.repeated == "" {
				if lines, err = l.Compare(t.Context(), conn, "public.t"); err != nil {
					t.Fatal(err)
				}
				expect(t, "tables", lines, c.wrongTables)
			}
			if lines, err = l.Misplaced(t.Context()); err != nil {
				t.Fatal(err)
			}
			expect(t, "misplaced rows", lines, "")
		})
	}
	t.Run("rows lie in another day's folder", func(t *testing.T) {
		dir := t.TempDir()
		writeLake(t, filepath.Join(dir, "2024/03/01"), sound)
		l, err := lakecheck.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		lines, err := l.Misplaced(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "misplaced rows", lines, "has 7 rows of another day")
	})
	t.Run("an empty lake", func(t *testing.T) {
		l, err := lakecheck.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		lines, err := l.Compare(t.Context(), conn, "public.t")
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "tables", lines, "is in Postgres and not in the lake")
	})
}

func expect(t *testing.T, what string, lines []string, want string) {
	t.Helper()
	all := strings.Join(lines, "\n")
	if want == "" && all != "" || !strings.Contains(all, want) {
		t.Errorf("%s: got %q, want %q", what, all, want)
	}
}

// row is a row of table public.t as an SQL values list, committed in the last
// hour of 29 February 2024.
func row(lsn, ordinal int, operation, before, after string, unchanged ...string) string {
	text := func(s string) string {
		if s == "" {
			return "null"
		}
		return "'" + s + "'"
	}
	list := "[]::varchar[]"
	if len(unchanged) > 0 {
		list = "['" + strings.Join(unchanged, "','") + "']"
	}
	return fmt.Sprintf("('public.t', '%s', %s, %s, timestamptz '2024-02-29 23:59:59.999999+00', %d::bigint, %d::bigint, %s)",
		operation, text(before), text(after), lsn, ordinal, list)
}

func writeLake(t *testing.T, folder string, rows []string) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	file := filepath.Join(folder, "00000001-0000000000000001-0000000000_00000001-00000000000000FF-0000000000.zstd.parquet")
	_, err = db.Exec(fmt.Sprintf(`copy (select * from (values %s)
		t("table", operation, before, after, commit_time, commit_lsn, ordinal, unchanged)) to '%s' (format parquet)`,
		strings.Join(rows, ","), file))
	if err != nil {
		t.Fatal(err)
	}
}
