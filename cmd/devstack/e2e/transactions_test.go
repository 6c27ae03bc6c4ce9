package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/tally"
)

// Transactions of every shape, from nothing to a million rows, one after the
// other on one lake: through a ring of 1 MiB first, then through the default
// one.
func TestTransactionsOfEveryShapeReachTheLake(t *testing.T) {
	settings := pipeline.Settings{"segment.max_rows": 10_000, "segment.max_bytes": "1MiB"}
	onEach(t, harness.Options{Settings: settings, TemporalMemory: true}, func(t *testing.T, h *harness.Harness) {
		h.SQL(`create table public.t (id bigint primary key, v text); create table public.u (id bigint primary key, v text)`)
		want := tally.Counts{}
		add := func(table, operation string, n int64) { want[tally.Kind{Table: table, Operation: operation}] += n }

		p := h.Run("--ring-max-bytes=1MiB")
		p.WaitStreaming()
		interleaved(t, h, add)
		h.WaitAck()
		h.LakeHas(want)
		h.SameAsPostgres("public.t", "public.u")

		// Larger than the ring: cut in its middle, over and over.
		copied := copyRows(t, h, 100_000)
		add("public.events", "insert", copied)
		h.WaitAck()
		p.Stop()
		h.LakeHas(want)

		// A million rows, most of them sent by a process that dies on the way.
		p = h.Run("--segment-max-bytes=16MiB")
		p.WaitStreaming()
		objects := len(h.Objects())
		h.SQL(`create table public.big (id bigint primary key, v text)`)
		add("public.big", "insert", h.SQL(`insert into public.big select i, 'row ' || i from generate_series(1, 1000000) i`).RowsAffected())
		h.WaitObjects(objects + 20)
		p.Kill9()
		p = h.Run("--segment-max-bytes=16MiB")
		h.WaitAck()
		h.LakeHas(want)
		if p.Status().Adopted == 0 {
			t.Error("the process that came after the kill has adopted nothing")
		}
		sum, err := h.Lake().Query(t.Context(), `select count(distinct json_extract(after, '$.id')) as ids, max(ordinal) as last from %s where "table" = 'public.big'`)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Fields(sum); len(got) != 4 || got[2] != "1000000" || got[3] != "999999" {
			t.Errorf("of a transaction with a million rows the lake has\n%s", sum)
		}
		p.Stop()
	})
}

// copyRows copies n rows to public.events in one transaction, some of them with
// characters that are special in a COPY or in JSON.
func copyRows(t *testing.T, h *harness.Harness, n int) int64 {
	t.Helper()
	done, err := h.Conn().CopyFrom(t.Context(), pgx.Identifier{"public", "events"}, []string{"id", "kind", "payload"},
		pgx.CopyFromSlice(n, func(i int) ([]any, error) {
			return []any{i, "copied", fmt.Sprintf("row\t%d \\N \"quoted\" \u2028 ☃\n", i)}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// interleaved runs three sessions whose transactions overlap in the WAL, with
// savepoints, rollbacks, truncates, keys that change and transactions that do
// nothing.
func interleaved(t *testing.T, h *harness.Harness, add func(table, operation string, n int64)) {
	t.Helper()
	var sessions [3]*pgx.Conn
	for i := range sessions {
		conn, err := pgx.Connect(t.Context(), h.Stack.Postgres.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		sessions[i] = conn
	}
	// do runs a statement in a session; what it changes counts as an operation
	// on a table, unless its transaction or savepoint is to be rolled back.
	const lost = ""
	do := func(session int, table, operation, sql string) {
		t.Helper()
		tag, err := sessions[session].Exec(t.Context(), sql)
		if err != nil {
			t.Fatalf("session %d: %s: %v", session, sql, err)
		}
		if operation != lost {
			add(table, operation, tag.RowsAffected())
		}
	}
	both := func(sql string) {
		t.Helper()
		for i := range 2 {
			do(i, "", lost, sql)
		}
	}

	both("begin")
	do(0, "public.t", "insert", `insert into public.t select i, 'a' from generate_series(1, 500) i`)
	do(1, "public.t", "insert", `insert into public.t select i, 'b' from generate_series(1001, 1500) i`)
	// A whole transaction between the beginnings and ends of others.
	do(2, "public.u", "insert", `insert into public.u values (1, 'c'), (2, null), (3, '')`)
	do(0, "", lost, `savepoint one`)
	do(0, "", lost, `insert into public.t select i, 'never' from generate_series(501, 600) i`)
	do(0, "", lost, `savepoint two`)
	do(0, "", lost, `update public.t set v = 'never' where id < 100`)
	do(0, "", lost, `rollback to one`)
	do(1, "", lost, `savepoint kept`)
	do(1, "public.t", "update", `update public.t set v = v || '!' where id between 1001 and 1200`)
	do(1, "", lost, `release kept`)
	do(0, "public.t", "update", `update public.t set id = -id where id <= 50`)
	do(0, "public.t", "delete", `delete from public.t where id between 400 and 500`)
	do(0, "public.t", "insert", `insert into public.t select i, 'again' from generate_series(400, 450) i`)
	do(1, "", lost, `commit`)
	do(2, "public.t", "delete", `delete from public.t where id between 1401 and 1450`)
	do(2, "", lost, `begin`)
	do(2, "", lost, `insert into public.u select i, 'never' from generate_series(10, 2000) i`)
	do(0, "", lost, `commit`)
	do(2, "", lost, `rollback`)

	// The same rows again and again in one transaction, and in subtransactions
	// of their own.
	do(0, "", lost, `begin`)
	for i := range 70 {
		do(0, "", lost, `savepoint s`)
		do(0, "public.u", "update", fmt.Sprintf(`update public.u set v = '%d' where id in (1, 2)`, i))
		if i%3 == 0 {
			do(0, "", lost, `delete from public.u`)
			do(0, "", lost, `rollback to s`)
			add("public.u", "update", -2) // which it takes back too
		}
	}
	do(0, "", lost, `commit`)

	// Nothing at all.
	do(1, "", lost, `begin; select pg_current_xact_id(); commit`)
	do(1, "", lost, `begin; savepoint s; insert into public.u values (99, 'never'); rollback to s; commit`)

	// Both tables in one TRUNCATE, and rows before and after it in its
	// transaction.
	do(1, "", lost, `begin`)
	do(1, "public.u", "insert", `insert into public.u select i, 'short' from generate_series(100, 110) i`)
	do(1, "", lost, `truncate public.t, public.u`)
	add("public.t", "truncate", 1)
	add("public.u", "truncate", 1)
	do(1, "public.t", "insert", `insert into public.t select i, 'last' from generate_series(1, 20) i`)
	do(1, "", lost, `commit`)
	do(1, "public.u", "insert", `insert into public.u values (1, 'after all')`)
	do(1, "public.t", "update", `update public.t set v = null where id > 10`)
}
