package e2e

import (
	"fmt"
	"testing"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/tally"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// endless is what a worker of the binary that is built for tests never comes to
// the end of decoding (internal/pgoutput/type_refusing.go).
const endless = "a message that no decoder finishes"

// One worker has an attempt at each step of an upload when it is killed: it looks
// for an object, fetches, decodes, sends an object that the store has not seen,
// and has sent one without having heard of it. Another worker finishes all five
// as soon as their heartbeats are missed; the object that was on its way arrives
// after that one's.
//
// On one version of Postgres: no step has to do with it.
func TestAWorkerThatIsKilledAtAnyStepOfAnUploadLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	h := harness.New(t, harness.Options{
		Postgres: 18, TemporalMemory: true,
		// A request that is held must not be given up meanwhile.
		Settings: pipeline.Settings{"segment.max_age": "100ms", "worker.concurrency": 8, "lake.timeout": "10m"},
	})
	ports, err := stack.FreePorts(1)
	succeed(t, err)
	data := fmt.Sprintf("127.0.0.1:%d", ports[0])
	relay, err := stack.NewRelay(data)
	succeed(t, err)
	t.Cleanup(relay.Close)
	s := h.Streamer("--data-listen", data, "--data-advertise", relay.Address())
	s.WaitStreaming()
	c := dialTemporal(t, h)
	rows := int64(0)
	insert := func(payload string) {
		rows++
		h.SQL("insert into public.events values ($1, 'kind', $2)", rows, payload)
	}
	inFlight := func(n int) (refs []segment.Ref) {
		t.Helper()
		s.WaitStatus(func(st harness.Status) string {
			refs = nil
			for _, f := range st.InFlight {
				refs = append(refs, f.Ref)
			}
			if len(refs) != n {
				return fmt.Sprintf("%d segments are in flight, waiting for %d", len(refs), n)
			}
			return ""
		})
		return refs
	}

	// Only an attempt that may not be the first looks: this workflow is started a
	// second time.
	insert("looked for")
	looked := inFlight(1)[0]
	succeed(t, c.TerminateWorkflow(t.Context(), looked.WorkflowID(), "", "to be started again"))
	s.WaitLog("a segment's workflow was closed before it completed; it is started again", harness.Bound)
	faults := h.Stack.Faults
	look := faults.Hold(stack.LooksForSegments, 1)
	good := h.Pipeline.Binary
	h.Build("tidemark_refuse_marker")
	victim := h.Worker()
	h.Pipeline.Binary = good
	h.WaitHits(look, 1)

	sent := faults.Hold(new(harness.Upload).Match, 1)
	insert("sent")
	h.WaitHits(sent, 1)
	stored := faults.HoldAnswer(new(harness.Upload).Match, 1)
	insert("stored")
	h.WaitHits(stored, 1)
	insert(endless)
	victim.WaitLog("decoding the marker that this build never finishes", harness.Bound)
	held := relay.Stall()
	insert("fetched")
	h.Within(harness.Bound, "the fetch", held)
	inFlight(5)
	if n := len(h.Objects()); n != 1 {
		t.Fatalf("%d objects are in the lake; an attempt was not held at its step", n)
	}

	victim.Kill9()
	relay.Resume()
	look.Remove()
	stored.Remove()
	next := h.Worker()
	h.WaitAck()
	if n := h.Logged("the lake has the object already"); n != 1 {
		t.Errorf("%d objects were found in the lake, want the one whose answer was never heard", n)
	}
	sent.Remove()
	h.WaitIdle(sent)
	h.LakeHas(tally.Counts{{Table: "public.events", Operation: "insert"}: rows})
	if n := len(h.Objects()); n != 5 {
		t.Errorf("5 segments have left %d objects", n)
	}
	h.SameAsPostgres("public.events")
	next.Stop()
	s.Stop()
}
