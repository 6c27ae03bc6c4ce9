package streamer

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/pgtest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// TestTwoStreamersInEveryTroubleLoseAndDoubleNothing lets two streamers, each
// with a ring and segments of another size at every start, fight for the slot
// while connections break, streamers stop at once or in peace, workflows are
// terminated and uploads are held back in any order. None of that is a reason to
// stop, and in the end every row and message is there once.
func TestTwoStreamersInEveryTroubleLoseAndDoubleNothing(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(t, pgtest.Options{})
	w.cfg.Messages = true
	w.cfg.MaxInFlight = 8
	w.cfg.remindEvery = 500 * time.Millisecond
	start := func() *process {
		return w.start(func(c *Config) {
			c.Ring.SegmentRows = 1 + dice.IntN(12)
			c.Ring.MaxChanges = 12 + dice.IntN(60)
			c.Ring.MaxAge = time.Duration(10+dice.IntN(200)) * time.Millisecond
			c.ShutdownTimeout = []time.Duration{-1, 300 * time.Millisecond}[dice.IntN(2)]
		})
	}
	pair := []*process{start(), start()}
	messages := 0
	steps := []struct {
		weight int
		do     func()
	}{
		{15, func() { w.insert(1 + dice.IntN(25)) }},
		{3, func() {
			w.exec("SELECT pg_logical_emit_message($1, 'p', 'm')", dice.IntN(2) == 0)
			messages++
		}},
		{2, func() {
			w.exec("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active_pid IS NOT NULL")
		}},
		{2, func() {
			i := dice.IntN(2)
			if err := pair[i].stop(); err != nil {
				t.Fatal(err)
			}
			pair[i] = start()
		}},
		{2, func() {
			if open := w.temporal.running(); len(open) > 0 {
				w.temporal.terminate(open[dice.IntN(len(open))])
			}
		}},
		{4, func() {
			n := dice.IntN(4)
			w.temporal.hold(func(r segment.Ref) bool { return int(r.First.LSN>>3)%4 < n })
		}},
		// Time for the streamers to come to something.
		{10, func() { time.Sleep(time.Duration(dice.IntN(400)) * time.Millisecond) }},
	}
	for range 120 {
		for _, p := range pair {
			if isClosed(p.done) {
				t.Fatalf("a streamer has stopped: %v", p.err)
			}
		}
		n := dice.IntN(38)
		for _, s := range steps {
			if n -= s.weight; n < 0 {
				s.do()
				break
			}
		}
	}
	w.temporal.hold(func(segment.Ref) bool { return false })
	w.insert(1)
	w.caughtUp()
	w.checkRows()
	_, rows := w.temporal.uploaded()
	for _, r := range rows {
		if r.Raw[0] == 'M' {
			messages--
		}
	}
	if messages != 0 {
		t.Errorf("%d messages are missing", messages)
	}
}
