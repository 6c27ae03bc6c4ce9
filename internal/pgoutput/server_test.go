package pgoutput

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemark-cdc/tidemark/internal/pgtest"
)

func TestBuiltInArraysAreThoseOfTheCatalog(t *testing.T) {
	for _, version := range []int{15, 18} {
		t.Run(fmt.Sprint("postgres", version), func(t *testing.T) {
			conn, err := pgconn.Connect(t.Context(), pgtest.New(t, pgtest.Options{Version: version}).URL())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(context.Background())
			compareArrays(t, conn)
		})
	}
}

func compareArrays(t *testing.T, conn *pgconn.PgConn) {
	t.Helper()
	rows := texts(t, conn, `SELECT oid::int8 || ' ' || typelem::int8 FROM pg_type WHERE oid < 10000 AND typelem <> 0 AND typtype = 'b'
		AND typsubscript = 'array_subscript_handler'::regproc AND typelem NOT IN (SELECT oid FROM pg_type WHERE typtype = 'c')`)
	want := map[uint32]uint32{}
	for _, row := range rows {
		array, element, _ := strings.Cut(row, " ")
		a, err := strconv.ParseUint(array, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		e, err := strconv.ParseUint(element, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		want[uint32(a)] = uint32(e)
	}
	delete(want, 2287) // record[], of no column
	for oid := range uint32(10000) {
		if got := builtinElement(oid); got != want[oid] {
			t.Errorf("element of %d is %d, want %d", oid, got, want[oid])
		}
	}
	if got := texts(t, conn, "SELECT typname FROM pg_type WHERE typdelim <> ',' AND oid < 16384"); strings.Join(got, " ") != "box _box" && strings.Join(got, " ") != "box" {
		t.Errorf("delimited by something else: %s", got)
	}
}

// texts gives the first column of the rows of a query.
func texts(t *testing.T, conn *pgconn.PgConn, query string) []string {
	t.Helper()
	results, err := conn.Exec(t.Context(), query).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, row := range results[0].Rows {
		out = append(out, string(row[0]))
	}
	return out
}
