package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
)

// Postgres makes a slot only once every transaction has ended that was open.
func TestASetupThatWaitsForATransactionSaysSoAndBrokenOffLeavesNothing(t *testing.T) {
	h := harness.New(t, harness.Options{Postgres: 15, NoSetup: true, TemporalMemory: true})
	h.SQL(`create table public.t (id int primary key)`)
	holder, err := pgx.Connect(t.Context(), h.Stack.Postgres.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close(context.Background())
	tx, err := holder.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `insert into public.t values (1)`); err != nil {
		t.Fatal(err)
	}
	says := fmt.Sprintf("Postgres waits for the transaction of process %d of ", holder.PgConn().PID())

	p := h.Start("setup")
	p.WaitLog(says, harness.Bound)
	if err := p.Process.Stop(harness.Bound); err != nil {
		t.Fatal(err)
	}
	if out := p.Output(); p.ExitCode() != 1 || !strings.Contains(out, "dropped again") {
		t.Errorf("broken off it ended with status %d:\n%s", p.ExitCode(), out)
	}
	if n := harness.Scalar[int](h, `select (select count(*) from pg_replication_slots)::int + (select count(*) from pg_publication)::int`); n != 0 {
		t.Errorf("it has left %d slots and publications", n)
	}

	p = h.Start("setup")
	p.WaitLog(says, harness.Bound)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.Within(harness.Bound, "setup after the transaction has ended", p.Done())
	if out := p.Output(); p.ExitCode() != 0 || !strings.Contains(out, "made, starts at") {
		t.Errorf("it ended with status %d:\n%s", p.ExitCode(), out)
	}
}
