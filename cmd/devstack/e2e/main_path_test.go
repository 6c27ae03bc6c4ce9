package e2e

import (
	"fmt"
	"testing"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/load"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/tally"
)

// onEach runs a test on each Postgres version.
func onEach(t *testing.T, opt harness.Options, test func(t *testing.T, h *harness.Harness)) {
	for _, version := range versions {
		t.Run(fmt.Sprint("Postgres ", version), func(t *testing.T) {
			opt.Postgres = version
			test(t, harness.New(t, opt))
		})
	}
}

// stop ends a load and returns what it has committed.
func stop(t *testing.T, l *load.Load) tally.Counts {
	t.Helper()
	want, err := l.Stop()
	if err != nil {
		t.Fatal(err)
	}
	return want
}

func TestEveryCommittedRowReachesTheLakeOnce(t *testing.T) {
	onEach(t, harness.Options{}, func(t *testing.T, h *harness.Harness) {
		p := h.Run()
		l := h.Load(load.Config{Seed: 1, Rate: 4000})
		p.WaitStreaming()
		h.Eventually(harness.Bound, func() string {
			if n := l.Counts().Total(); n < 20_000 {
				return fmt.Sprintf("%d rows are committed, waiting for 20000", n)
			}
			return ""
		})
		want := stop(t, l)
		h.WaitAck()
		h.LakeHas(want)
		h.SameAsPostgres()
		p.Stop()
	})
}
