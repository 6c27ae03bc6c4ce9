package e2e

import (
	"fmt"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/load"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// A streamer and two workers in three processes, the rows between them over
// Arrow Flight. One upload is held by S3 while those after it finish.
func TestAckStandsWhileOneUploadIsHeldAndJumpsOverLaterOnesWhenItEnds(t *testing.T) {
	few := pipeline.Settings{"segment.max_rows": 200, "segment.max_age": "200ms"}
	onEach(t, harness.Options{Settings: few, TemporalMemory: true}, func(t *testing.T, h *harness.Harness) {
		s := h.Streamer()
		workers := []*harness.Proc{h.Worker(), h.Worker()}
		s.WaitStreaming()
		h.WaitAck()

		var upload harness.Upload
		hold := h.Stack.Faults.Hold(upload.Match, 0)
		l := h.Load(load.Config{Seed: 3, Rate: 2000, Largest: 500})
		h.WaitHits(hold, 1)
		first := h.Object(&upload).First
		stands := s.WaitAckBefore(first)
		if stands > first.LSN {
			t.Fatalf("the ack %s has passed %s, which is held", stands, first)
		}
		still := func() {
			t.Helper()
			if now := h.AckLSN(); now != stands {
				t.Fatalf("the ack has moved from %s to %s while the upload of %s was held", stands, now, first)
			}
		}
		h.Eventually(harness.Bound, func() string {
			still()
			if n := len(h.Objects()); n < 60 {
				return fmt.Sprintf("%d later segments have finished, waiting for 60", n)
			}
			return ""
		})
		want := h.StopLoad(l)
		s.WaitStatus(func(st harness.Status) string {
			still()
			if n := len(st.InFlight); n != 1 || st.Ring.Waiting.Changes > 0 || st.InFlight[0].Ref.First != first {
				return fmt.Sprintf("%d segments are in flight and %d changes are waiting; it should be the held one alone", n, st.Ring.Waiting.Changes)
			}
			return ""
		})
		objects := h.Objects()
		last := objects[len(objects)-1].Last
		still()
		hold.Remove()
		h.Eventually(harness.Bound, func() string {
			switch now := h.AckLSN(); {
			case now == stands:
				return fmt.Sprintf("the upload was let go, and the ack still stands at %s", now)
			case now < last.LSN:
				t.Fatalf("the ack has moved to %s only, the end of the later segments is %s", now, last)
			}
			return ""
		})
		h.WaitAck()
		h.LakeHas(want)
		h.SameAsPostgres()

		uploads := uploadsByWorker(t, h)
		for _, w := range workers {
			n := 0
			for identity, uploaded := range uploads {
				var pid int
				if _, err := fmt.Sscanf(identity, "%d@", &pid); err == nil && pid == w.PID() {
					n = uploaded
				}
			}
			if n == 0 {
				t.Errorf("the worker with pid %d has uploaded nothing; the others: %v", w.PID(), uploads)
			}
			w.Stop()
		}
		s.Stop()
	})
}

// uploadsByWorker counts, by the worker's identity, the uploads that have
// finished, as the histories of the lake's segments tell.
func uploadsByWorker(t *testing.T, h *harness.Harness) map[string]int {
	t.Helper()
	c := dialTemporal(t, h)
	counts := map[string]int{}
	for _, o := range h.Objects() {
		id := segment.Ref{Pipeline: h.Settings["pipeline"].(string), First: o.First}.WorkflowID()
		events := c.GetWorkflowHistory(t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			e, err := events.Next()
			if err != nil {
				t.Fatal(err)
			}
			if a := e.GetActivityTaskCompletedEventAttributes(); a != nil {
				counts[a.Identity]++
			}
		}
	}
	return counts
}
