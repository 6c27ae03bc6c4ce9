package e2e

import (
	"fmt"
	"testing"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/load"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/tally"
)

// Somebody drops the slot while a process streams from it. The process ends and
// says why, it is not called ready, and neither it nor the next one makes
// another slot. The publication has a name that needs quoting, and the database
// is given as keywords with options that must not change a value.
func TestADroppedSlotIsNeitherMadeAgainNorCalledReady(t *testing.T) {
	t.Parallel()
	odd := pipeline.Settings{"segment.max_age": "200ms", "postgres.publication": `Shop's "Orders", all`}
	h := harness.New(t, harness.Options{Postgres: 15, NoSetup: true, Settings: odd, TemporalMemory: true})
	if err := load.Create(t.Context(), h.Stack.Postgres.URL()); err != nil {
		t.Fatal(err)
	}
	at := h.Conn().Config()
	h.Pipeline.Env = append(h.Pipeline.Env, fmt.Sprintf(
		"TIDEMARK_POSTGRES_URL=host='%s' port=%d user=%s dbname=%s sslmode=disable application_name=mine options='-c DateStyle=German -c search_path=public'",
		at.Host, at.Port, at.User, at.Database))
	h.Setup()
	slots := func() int { return harness.Scalar[int](h, "select count(*)::int from pg_replication_slots") }

	p := h.Run()
	p.WaitStreaming()
	h.SQL(`insert into public.events values (1, 'a', 'b'), (2, 'a', 'b')`)
	h.WaitAck()
	verb(t, h, 0, "wal        fine: Postgres keeps ", "status", "--ops-listen="+p.Ops)
	verb(t, h, 0, "ready", "health", "--ready", "--ops-listen="+p.Ops)
	h.SQL(`do $$ begin loop
		perform pg_terminate_backend(active_pid) from pg_replication_slots where active_pid is not null;
		begin perform pg_drop_replication_slot(slot_name) from pg_replication_slots; exit;
		exception when object_in_use then null; end;
	end loop; end $$`)
	h.SQL(`insert into public.events values (3, 'a', 'b')`)
	h.Within(harness.Bound, "the end of a process without its slot", p.Done())
	ended(t, p, 1)
	if h.Logged("does not exist: if this pipeline is new, run tidemark setup; if it is not, the slot was dropped") == 0 {
		t.Errorf("the process does not say why it has ended:\n%s", p.Tail(20))
	}
	verb(t, h, 1, "no process answers", "health", "--ready", "--ops-listen="+p.Ops)
	verb(t, h, 2, "", "run")
	if n := slots(); n != 0 {
		t.Errorf("there are %d slots, and nobody was to make one", n)
	}
	h.LakeHas(tally.Counts{{Table: "public.events", Operation: "insert"}: 2})
}
