package e2e

import (
	"sync"
	"testing"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/tally"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// The streamer is killed at each step of dispatch, adoption and
// acknowledgement: at the very call to Temporal or to the store, which is seen by
// a proxy of its own. The next streamer finishes what it left, and is killed at
// the next step. The worker lives on all the time, and reaches Temporal directly.
//
// On one version of Postgres: no step has to do with it.
func TestAStreamerThatIsKilledAtAnyStepOfDispatchLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	h := harness.New(t, harness.Options{
		Postgres: 18, TemporalMemory: true,
		Settings: pipeline.Settings{"segment.max_rows": 40, "segment.max_age": "100ms"},
	})
	proxy, err := stack.NewTemporalProxy(h.Stack.Temporal.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	k := &killing{t: t, h: h, proxy: proxy, want: tally.Counts{}}
	h.Worker()
	k.begin()
	var late *stack.Break
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"before the start is recorded", func() {
			k.at("StartWorkflowExecution", stack.Before)
			k.insert()
			k.dead()
		}},
		{"after the start is recorded, before it is heard", func() {
			k.at("StartWorkflowExecution", stack.After)
			k.insert()
			k.dead()
		}},
		{"before the start is recorded, which it is when the process is gone", func() {
			b := k.at("StartWorkflowExecution", stack.Late)
			k.insert()
			k.dead()
			b.Release()
		}},
		{"before the start is recorded, and its successor comes first", func() {
			late = k.at("StartWorkflowExecution", stack.Late)
			k.insert()
			k.dead()
		}},
		{"while a segment is uploaded", func() {
			late.Release()
			held, _ := k.inFlight()
			k.kill()
			held.Remove()
		}},
		{"having adopted a running segment, before it says where the rows are", func() {
			k.adopting(func() { k.at("SignalWorkflowExecution", stack.Before) })
		}},
		{"having said where the rows are, before it hears that it has", func() {
			k.adopting(func() { k.at("SignalWorkflowExecution", stack.After) })
		}},
		{"before it knows the boundary that is recorded", func() {
			k.adopting(func() { k.at("DescribeWorkflowExecution", stack.After) })
		}},
		{"before a terminated segment is started again", func() {
			k.terminated(func() { k.at("StartWorkflowExecution", stack.Before) })
		}},
		{"after a terminated segment is started again, before it is heard", func() {
			k.terminated(func() { k.at("StartWorkflowExecution", stack.After) })
		}},
		{"before it hears that a segment has completed", func() {
			held, _ := k.inFlight()
			// The call that waits for the end is made already: what follows it is
			// the look at how the run has ended.
			k.at("DescribeWorkflowExecution", stack.Before)
			held.Remove()
			k.dead()
		}},
		{"before the ack is on record", func() {
			k.atStore(stack.Puts("/_tidemark/ack.json"), false)
			k.insert()
			k.dead()
		}},
		{"after the ack is on record, before Postgres is told", func() {
			k.atStore(stack.Puts("/_tidemark/ack.json"), true)
			k.insert()
			k.dead()
		}},
	} {
		step.do()
		k.begin()
		h.WaitAck()
		if lines := h.Missing(k.want); len(lines) > 0 {
			t.Fatalf("killed %s: rows in the lake differ from rows committed: %v", step.name, lines)
		}
		t.Logf("killed %s: nothing lost, nothing twice", step.name)
	}
	h.LakeHas(k.want)
	h.SameAsPostgres("public.events")
	// Of each kind there are some, or the kills came at other steps.
	recorded, stored := h.Logged("adopting a recorded segment"), h.Logged("adopting a segment from the lake")
	if recorded < 3 || stored < 3 {
		t.Errorf("%d segments were adopted from their records, and %d from the lake", recorded, stored)
	}
}

// killing has a streamer that is killed and replaced.
type killing struct {
	t     *testing.T
	h     *harness.Harness
	proxy *stack.TemporalProxy
	want  tally.Counts
	rows  int64

	mu     sync.Mutex
	victim *harness.Proc
}

// begin starts the next streamer.
func (k *killing) begin() {
	k.t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.victim = k.h.Streamer("--temporal-address", k.proxy.Address())
}

// kill ends the present one, from any goroutine.
func (k *killing) kill() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.victim.Process.Kill9(); err != nil {
		k.t.Error(err)
	}
}

// at has the streamer killed at the next call of a method.
func (k *killing) at(method string, moment stack.Moment) *stack.Break {
	return k.proxy.Break(method, moment, k.kill)
}

// atStore has it killed at the next request that matches.
func (k *killing) atStore(match stack.Match, stored bool) {
	k.h.Stack.Faults.Cut(match, 1, stored, k.kill)
}

// dead waits until the streamer has been killed.
func (k *killing) dead() {
	k.t.Helper()
	k.mu.Lock()
	victim := k.victim
	k.mu.Unlock()
	k.h.Within(harness.Bound, "the life of the streamer, which was to be killed,", victim.Done())
}

// insert commits three transactions of 30 rows: more than one segment.
func (k *killing) insert() {
	k.t.Helper()
	for range 3 {
		k.commit()
	}
}

func (k *killing) commit() {
	k.t.Helper()
	k.h.SQL(`insert into public.events select i, 'a', 'row ' || i from generate_series($1::bigint, $1::bigint + 29) i`, k.rows)
	k.rows += 30
	k.want[tally.Kind{Table: "public.events", Operation: "insert"}] += 30
}

// inFlight commits the rows of one segment and holds its upload. It gives the
// segment's workflow too.
func (k *killing) inFlight() (held *stack.Fault, workflow string) {
	k.t.Helper()
	var u harness.Upload
	held = k.h.Stack.Faults.Hold(u.Match, 0)
	k.commit()
	k.h.WaitHits(held, 1)
	return held, segment.WorkflowID(k.h.Settings["pipeline"].(string), k.h.Object(&u).First)
}

// adopting has a streamer killed while it adopts what its predecessor has left
// running.
func (k *killing) adopting(arm func()) {
	k.t.Helper()
	held, _ := k.inFlight()
	k.kill()
	arm()
	k.begin()
	k.dead()
	held.Remove()
}

// terminated has the streamer killed when an operator has terminated the
// workflow that it waits for.
func (k *killing) terminated(arm func()) {
	k.t.Helper()
	held, workflow := k.inFlight()
	c := dialTemporal(k.t, k.h)
	arm()
	if err := c.TerminateWorkflow(k.t.Context(), workflow, "", "a test"); err != nil {
		k.t.Fatal(err)
	}
	k.dead()
	held.Remove()
}
