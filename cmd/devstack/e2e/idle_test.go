package e2e

import (
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/tally"
)

// A pipeline of one table, in a database that writes to others: the ack follows
// the WAL all the same, and Postgres shuts down as if nobody were connected.
func TestQuietPipelineHoldsNeitherWALNorShutdownsBack(t *testing.T) {
	one := pipeline.Settings{"postgres.tables": "public.events", "segment.max_age": "200ms"}
	onEach(t, harness.Options{Settings: one, TemporalMemory: true}, func(t *testing.T, h *harness.Harness) {
		h.SQL(`create table public.noise (id bigint primary key, v text)`)
		p := h.Run()
		p.WaitStreaming()
		for _, c := range []struct {
			name string
			sql  []string
		}{
			{"rows of other tables", []string{`insert into public.noise select i, repeat('x', 200) from generate_series(1, 20000) i`}},
			{"transactions that change nothing", []string{
				`begin; select pg_current_xact_id(); commit`,
				`begin; insert into public.events values (1, 'a', 'b'); rollback`,
				`begin; savepoint s; insert into public.events values (1, 'a', 'b'); rollback to s; commit`,
				`create table public.more (n int); drop table public.more`,
			}},
		} {
			for _, sql := range c.sql {
				h.SQL(sql)
			}
			h.WaitAck()
			if rows := h.RowsInLake(); rows.Total() != 0 {
				t.Fatalf("%s: the lake has rows: %v", c.name, rows)
			}
		}
		stopsWithin(t, h, 25*time.Second)
		p.WaitStreaming()

		// Also while rows cannot be uploaded, so that the ack cannot move and
		// Postgres waits in vain for a confirmation.
		held := h.Stack.Faults.Hold(new(harness.Upload).Match, 0)
		h.SQL(`insert into public.events values (1, 'a', 'b'), (2, 'a', 'b')`)
		h.WaitHits(held, 1)
		stopsWithin(t, h, 45*time.Second)
		held.Remove()
		p.WaitStreaming()
		h.WaitAck()
		h.LakeHas(tally.Counts{{Table: "public.events", Operation: "insert"}: 2})
		// Either of the two places that look for it may come first.
		if h.Logged("waits for rows that are not in the lake yet")+h.Logged("letting it go") == 0 {
			t.Error("the streamer has not let a server go that waited for it")
		}
		p.Stop()
	})
}

// stopsWithin shuts Postgres down, fast, with the streamer connected, and
// starts it again. A server that is held back does not end at all, and is killed
// after a minute.
func stopsWithin(t *testing.T, h *harness.Harness, bound time.Duration) {
	t.Helper()
	begin := time.Now()
	if err := h.Stack.Postgres.Stop(); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begin)
	t.Logf("a fast shutdown took %s", took.Round(time.Millisecond))
	if took > bound {
		t.Errorf("a fast shutdown took %s, want at most %s", took, bound)
	}
	if err := h.Stack.Postgres.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}
