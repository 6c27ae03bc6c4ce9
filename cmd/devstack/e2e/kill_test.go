package e2e

import (
	"math/rand/v2"
	"testing"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/load"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
)

// Processes die at random moments under load, also before they have caught up
// from the death before, and start again. Uploads of processes that have died
// reach the store when their segments have been taken over by others. Segments
// are cut by age under load and by size when a backlog comes again, so that no
// restart would cut them as they were cut before.
func TestEveryRowReachesTheLakeOnceThroughKills(t *testing.T) {
	few := pipeline.Settings{"segment.max_rows": 1000, "segment.max_age": "200ms"}
	onEach(t, harness.Options{Settings: few, TemporalMemory: true}, func(t *testing.T, h *harness.Harness) {
		seed := rand.Uint64()
		t.Logf("the moments are chosen with the seed %d", seed)
		rng := rand.New(rand.NewPCG(seed, 0))
		l := h.Load(load.Config{Seed: seed, Rate: 1500, Largest: 1500})
		// moment is some time off, measured in rows that are committed.
		moment := func() { t.Helper(); h.WaitRows(l, l.Counts().Total()+rng.Int64N(2500)) }

		streamer, workers := h.Streamer(), []*harness.Proc{h.Worker(), h.Worker()}
		streamer.WaitStreaming()
		var late []*stack.Fault
		for round := range 8 {
			late = append(late, h.Stack.Faults.Hold(new(harness.Upload).Match, 1))
			if round >= 2 {
				late[round-2].Remove()
			}
			moment()
			if round < 4 && rng.IntN(2) == 0 {
				streamer.WaitStreaming() // otherwise it may die while it starts
			}
			which := round % 4
			if which == 0 || which == 2 {
				streamer.Kill9()
			}
			if which == 1 || which == 2 {
				workers[round%len(workers)].Kill9()
			}
			if which == 3 {
				for _, p := range append(workers, streamer) {
					p.Kill9()
				}
			}
			moment()
			for i, w := range workers {
				if !w.Running() {
					workers[i] = h.Worker()
				}
			}
			if !streamer.Running() {
				streamer = h.Streamer()
			}
		}
		streamer.WaitStreaming()
		for _, p := range append(workers, streamer) {
			p.Kill9()
		}
		// From here on streamer and worker are one process.
		for _, f := range late {
			f.Remove()
		}
		run := h.Run()
		for range 4 {
			moment()
			run.Kill9()
			run = h.Run()
		}
		run.WaitStreaming()
		moment()
		want := h.StopLoad(l)
		h.WaitAck()
		for _, f := range late {
			h.WaitIdle(f)
		}
		h.LakeHas(want)
		h.SameAsPostgres()
		run.Stop()
		for _, adopted := range []string{"adopting a recorded segment", "adopting a segment from the lake"} {
			if h.Logged(adopted) == 0 {
				t.Errorf("no process was %s: the kills came at no moment that matters", adopted)
			}
		}
	})
}
