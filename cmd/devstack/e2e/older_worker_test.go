package e2e

import (
	"fmt"
	"strings"
	"testing"

	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/tidemark-cdc/tidemark/activities"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/tally"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/workflows"
)

// The streamer is of the next release already, and so is one worker; the other
// has been left as it was. What the older one gets it refuses, workflows and
// attempts, and says what to do; the newer one does it.
//
// Temporal offers a task to whoever asks. For the older worker to be the only one
// that does, the newer one has one upload at a time, and that one is held.
//
// On one version of Postgres: no row gets any further.
func TestAWorkerOfAnOlderBinaryLeavesTheWorkToANewerOne(t *testing.T) {
	t.Parallel()
	h := harness.New(t, harness.Options{
		Postgres: 18, TemporalMemory: true,
		// A request that is held must not be given up meanwhile.
		Settings: pipeline.Settings{"segment.max_age": "100ms", "lake.timeout": "10m"},
	})
	ordinary := h.Pipeline.Binary
	h.Build("tidemark_next_version")
	next := h.Pipeline.Binary
	older := func() *harness.Proc {
		t.Helper()
		h.Pipeline.Binary = ordinary
		defer func() { h.Pipeline.Binary = next }()
		return h.Worker()
	}
	s := h.Streamer()
	s.WaitStreaming()
	c := dialTemporal(t, h)
	rows := int64(0)
	insert := func() {
		rows++
		h.SQL("insert into public.events values ($1, 'kind', 'a row')", rows)
	}

	// Nobody else is there: the workflow stays open, and no task of it is lost.
	old := older()
	insert()
	old.WaitLog(fmt.Sprintf("segment input has version %d, this worker understands up to %d: upgrade the workers of task queue %s",
		workflows.Version+1, workflows.Version, workflows.TaskQueue("e2e")), harness.Bound)
	old.Stop()

	held := h.Stack.Faults.Hold(new(harness.Upload).Match, 1)
	worker := h.Worker("--worker-concurrency", "1")
	h.WaitHits(held, 1)
	pending := func(ref segment.Ref) *workflowpb.PendingActivityInfo {
		described, err := c.DescribeWorkflowExecution(t.Context(), ref.WorkflowID(), "")
		if err != nil || len(described.GetPendingActivities()) != 1 {
			return nil
		}
		return described.GetPendingActivities()[0]
	}
	// One at a time: a segment each. The newer worker has brought its workflow to
	// where an attempt is due before the older one asks.
	for n := range 2 {
		insert()
		s.WaitStatus(func(st harness.Status) string {
			if len(st.InFlight) != n+2 || pending(st.InFlight[n+1].Ref) == nil {
				return fmt.Sprintf("%d segments are in flight, waiting for %d with an attempt that is due", len(st.InFlight), n+2)
			}
			return ""
		})
	}
	old = older()
	for _, f := range s.Status().InFlight[1:] {
		h.Eventually(harness.Bound, func() string {
			attempt := pending(f.Ref)
			if attempt == nil || attempt.GetLastFailure() == nil {
				return fmt.Sprintf("of segment %s no attempt has failed", f.Ref.First)
			}
			failure := attempt.GetLastFailure()
			if class := failure.GetApplicationFailureInfo().GetType(); class != string(activities.WorkerTooOld) {
				t.Fatalf("the attempt at segment %s has failed with %s: %s", f.Ref.First, class, failure.GetMessage())
			}
			for _, want := range []string{
				f.Ref.First.String(), fmt.Sprintf("the input has version %d, this worker understands up to %d", activities.Version+1, activities.Version), "upgrade the workers of this task queue",
			} {
				if !strings.Contains(failure.GetMessage(), want) {
					t.Errorf("the attempt's failure lacks %q: %s", want, failure.GetMessage())
				}
			}
			return ""
		})
	}
	if n := old.Metric(`tidemark_upload_failures_total{action="upload",class="WorkerTooOld",pipeline="e2e"}`); n < 2 {
		t.Errorf("the older worker counts %g attempts that it has refused, want two at least", n)
	}
	verbSays(t, h, "segments show", []string{s.Status().InFlight[1].Ref.First.String()}, "retrying", "upgrade the workers of this task queue")
	if n := len(h.Objects()); n > 0 {
		t.Errorf("the lake has %d objects, and the newer worker has stored none", n)
	}

	old.Stop()
	held.Remove()
	h.WaitAck()
	h.LakeHas(tally.Counts{{Table: "public.events", Operation: "insert"}: rows})
	if n := len(h.Objects()); n != 3 {
		t.Errorf("3 segments have left %d objects", n)
	}
	h.SameAsPostgres("public.events")
	worker.Stop()
	s.Stop()
}
