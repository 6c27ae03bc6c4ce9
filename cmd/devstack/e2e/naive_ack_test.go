package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/load"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
)

// The same crash under two acks: the contiguous prefix of finished segments,
// and, in a binary built for this test alone, the end of the latest finished
// one. The first loses nothing. That the second loses rows, and that the checks
// see it, is what makes the checks worth something in every other test.
//
// On one version of Postgres: which ack is sent has nothing to do with it.
func TestChecksSeeTheRowsThatANaiveAckLoses(t *testing.T) {
	for _, c := range []struct {
		name string
		tags []string
	}{
		{name: "contiguous prefix"},
		{name: "latest finished segment", tags: []string{"tidemark_naive_ack"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := harness.New(t, harness.Options{Postgres: 18, Settings: pipeline.Settings{"segment.max_rows": 200, "segment.max_age": "200ms"}})
			good := h.Pipeline.Binary
			if c.tags != nil {
				h.Build(c.tags...)
			}
			p := h.Run()
			p.WaitStreaming()
			// One upload fails until the crash, those after it succeed.
			var upload harness.Upload
			refuse := h.Stack.Faults.Refuse(upload.Match, 503, 0)
			l := h.Load(load.Config{Seed: 6, Rate: 2000, Largest: 500})
			h.WaitHits(refuse, 1)
			first := h.Object(&upload).First
			h.WaitObjects(40)
			want := h.StopLoad(l)
			h.Eventually(harness.Bound, func() string {
				switch ack := h.AckLSN(); {
				case c.tags != nil && ack <= first.LSN:
					return fmt.Sprintf("the naive ack stands at %s, before the failing segment at %s", ack, first)
				case c.tags == nil && ack > first.LSN:
					t.Fatalf("the ack %s has passed the failing segment at %s", ack, first)
				}
				return ""
			})
			p.Kill9()
			refuse.Remove()

			h.Pipeline.Binary = good
			h.Run().WaitStreaming()
			h.WaitAck()
			missing, unsound, unlike := h.Missing(want), h.Unsound(), h.Unlike()
			if c.tags == nil {
				if all := append(append(missing, unsound...), unlike...); len(all) > 0 {
					t.Fatalf("rows are lost under the contiguous prefix:\n%s", strings.Join(all, "\n"))
				}
				return
			}
			t.Logf("what the checks have seen:\n%s", strings.Join(append(append(missing, unsound...), unlike...), "\n"))
			if len(missing) == 0 {
				t.Error("counting the lake's rows does not show that some are lost")
			}
			if len(unlike) == 0 {
				t.Error("replaying the lake does not show that rows are lost")
			}
			if !strings.Contains(strings.Join(unsound, "\n"), "no object holds the changes") {
				t.Errorf("tidemark verify does not show that changes are in no object: %s", unsound)
			}
		})
	}
}
