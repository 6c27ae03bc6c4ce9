package readback

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/pgtest"
)

func TestAValueIsReadBackOnlyFromTheVersionThatTheChangeMade(t *testing.T) {
	pg := pgtest.New(t, pgtest.Options{})
	db, err := pgx.Connect(t.Context(), pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context())
	// exec gives the transaction's ID.
	exec := func(sql string) uint32 {
		t.Helper()
		tx, err := db.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var xid uint32
		if _, err = tx.Exec(t.Context(), sql); err == nil {
			if err = tx.QueryRow(t.Context(), "SELECT txid_current()::text::bigint % 4294967296").Scan(&xid); err == nil {
				err = tx.Commit(t.Context())
			}
		}
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return xid
	}
	exec(`CREATE SCHEMA "A b"; CREATE TABLE "A b"."T.1" ("Id" int, code char(5), big text, "n" int, none text, PRIMARY KEY ("Id", code))`)
	exec(`INSERT INTO "A b"."T.1" VALUES (1, 'x', repeat('long ', 10000), 0)`)
	updated := exec(`UPDATE "A b"."T.1" SET n = 1`)
	rel := &change.Relation{Namespace: "A b", Name: "T.1"}
	if err := db.QueryRow(t.Context(), `SELECT '"A b"."T.1"'::regclass::oid`).Scan(&rel.OID); err != nil {
		t.Fatal(err)
	}
	key := []change.KeyValue{{Column: "Id", Text: []byte("1")}, {Column: "code", Text: []byte("x    ")}}

	connect := func(context.Context) (*pgconn.Config, error) { return pgconn.ParseConfig(pg.URL()) }
	r := New(connect, map[string]string{"TimeZone": "UTC"})
	defer r.Close(t.Context())
	check := func(when string, xid uint32, key []change.KeyValue, columns []string, want string) {
		t.Helper()
		texts, found, err := r.Values(t.Context(), rel, key, xid, columns)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		got := "nothing"
		if found {
			got = ""
			for _, b := range texts {
				s := "NULL"
				if b != nil {
					s = fmt.Sprintf("%d bytes", len(b))
				}
				got += s + " "
			}
		}
		if strings.TrimSpace(got) != want {
			t.Errorf("%s: got %s, want %s", when, got, want)
		}
	}
	check("the version is there", updated, key, []string{"big", "code", "none"}, "50000 bytes 5 bytes NULL")
	check("another row", updated, []change.KeyValue{{Column: "Id", Text: []byte("2")}, {Column: "code", Text: []byte("x")}}, []string{"big"}, "nothing")
	check("a column that is not there", updated, key, []string{"gone"}, "nothing")
	check("another transaction", updated-1, key, []string{"big"}, "nothing")
	exec(`ALTER TABLE "A b"."T.1" RENAME TO renamed`)
	check("a renamed table", updated, key, []string{"big"}, "50000 bytes")
	if err := pg.Restart(t.Context(), pgtest.Immediate); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Values(t.Context(), rel, key, updated, []string{"big"}); err == nil {
		t.Error("a broken connection is no error")
	}
	check("a new connection", updated, key, []string{"big"}, "50000 bytes")
	if db, err = pgx.Connect(t.Context(), pg.URL()); err != nil {
		t.Fatal(err)
	}
	exec(`UPDATE "A b".renamed SET n = 2`)
	check("a later version", updated, key, []string{"big"}, "nothing")
	exec(`DROP TABLE "A b".renamed`)
	check("a dropped table", updated, key, []string{"big"}, "nothing")
}
