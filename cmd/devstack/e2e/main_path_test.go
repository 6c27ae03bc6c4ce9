package e2e

import (
	"fmt"
	"testing"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/load"
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

func TestEveryCommittedRowReachesTheLakeOnce(t *testing.T) {
	onEach(t, harness.Options{}, func(t *testing.T, h *harness.Harness) {
		p := h.Run()
		l := h.Load(load.Config{Seed: 1, Rate: 4000})
		p.WaitStreaming()
		h.WaitRows(l, 20_000)
		want := h.StopLoad(l)
		h.WaitAck()
		h.LakeHas(want)
		h.SameAsPostgres()
		p.Stop()
	})
}
