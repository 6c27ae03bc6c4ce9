package streamer

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/pgtest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer/settle"
)

// open waits until n segments are recorded and not finished.
func (w *world) open(n int) {
	w.t.Helper()
	w.until("the segments are recorded", func() bool { return len(w.temporal.running()) == n })
}

// done waits until n segments are in the lake.
func (w *world) done(n int) {
	w.t.Helper()
	w.until("the segments are in the lake", func() bool { refs, _ := w.temporal.uploaded(); return len(refs) == n })
}

// A standby that stopped at a point is promoted. Before that point rows 1 to 5
// are in the lake and acknowledged; what happens on either side of it is the
// case. Rows that only the old server had are lost to the database.
func TestRowsThatAFailoverHasCostAreSettled(t *testing.T) {
	template := pgtest.New(t, pgtest.Options{})
	if err := template.Stop(pgtest.Fast); err != nil {
		t.Fatal(err)
	}
	all := func(segment.Ref) bool { return true }
	none := func(segment.Ref) bool { return false }
	for name, c := range map[string]struct {
		// before and after are what is committed before and after the point. A
		// streamer runs over both in one go, so its segments may lie across it.
		before, after func(w *world, start func() *process)
		// mayGoOn: a streamer cannot know of it. afterwards: not once the
		// divergence is recorded.
		mayGoOn, afterwards bool
		// drop: the promoted server has no slot.
		drop bool
		// lost rows stand in the lake after all.
		lost []int
		// again are rows from before the point that the stream brings.
		again []int
		// straddling: an object lies across the point.
		straddling bool
		gaps       int64
		// deaths is how often a process that settles it can die at least.
		deaths int
	}{
		"rows in the lake, on record": {
			after: func(w *world, start func() *process) {
				s := start()
				w.insert(5) // 6 to 10
				w.caughtUp()
				w.must(s.stop())
			},
			lost: to(6, 10), deaths: 1,
		},
		"rows in the lake, behind rows that are not": {
			before: func(w *world, _ func() *process) { w.insert(10) }, // 6 to 15
			after: func(w *world, start func() *process) {
				w.temporal.hold(func(r segment.Ref) bool { return r.Rows == 10 })
				s := start()
				w.open(1)
				w.insert(7) // 16 to 22
				w.done(2)
				w.insert(10) // 23 to 32, recorded and never finished
				w.open(2)
				w.must(s.stop())
			},
			again: to(6, 15), lost: to(16, 22), deaths: 1, afterwards: true,
		},
		"an object that lies across the point": {
			before: func(w *world, _ func() *process) { w.insert(3) }, // 6 to 8
			after: func(w *world, start func() *process) {
				w.insert(4) // 9 to 12
				s := start()
				w.caughtUp()
				w.must(s.stop())
			},
			lost: to(6, 12), straddling: true,
		},
		"an object that lies across the point, behind rows that are not in the lake": {
			before: func(w *world, _ func() *process) { w.insert(10); w.insert(3) }, // 6 to 15, 16 to 18
			after: func(w *world, start func() *process) {
				w.insert(4) // 19 to 22
				w.temporal.hold(func(r segment.Ref) bool { return r.Rows == 10 })
				s := start()
				w.done(2)
				w.open(1)
				w.must(s.stop())
			},
			again: to(6, 15), lost: to(16, 22), straddling: true,
		},
		"a recorded segment that lies across the point": {
			before: func(w *world, _ func() *process) { w.insert(3) }, // 6 to 8
			after: func(w *world, start func() *process) {
				w.temporal.hold(all)
				w.insert(4)
				s := start()
				w.open(1)
				w.must(s.stop())
			},
			again: to(6, 8), deaths: 1,
		},
		"a recorded segment beyond the point": {
			after: func(w *world, start func() *process) {
				w.temporal.hold(all)
				w.insert(4)
				s := start()
				w.open(1)
				w.must(s.stop())
			},
			mayGoOn: true, deaths: 1,
		},
		"a broken segment beyond the point": {
			after: func(w *world, start func() *process) {
				w.temporal.hold(all)
				w.insert(4)
				s := start()
				w.open(1)
				w.must(s.stop())
				w.temporal.terminate(w.temporal.running()[0])
			},
			mayGoOn: true, deaths: 1,
		},
		"no slot on the standby, which has everything": {
			before: func(w *world, _ func() *process) { w.insert(3) }, // 6 to 8, which nothing brings
			after:  func(*world, func() *process) {},
			drop:   true, gaps: 1, deaths: 2,
		},
		"no slot on the standby, whose WAL ends below an idle ack": {
			before: func(w *world, _ func() *process) { w.insert(3) }, // 6 to 8
			after: func(w *world, start func() *process) {
				s := start()
				w.caughtUp() // with what was unpublished
				w.must(s.stop())
			},
			drop: true, again: to(6, 8), gaps: 1, deaths: 2,
		},
		"no slot on the standby, and an object that lies across the point": {
			before: func(w *world, _ func() *process) { w.insert(3) }, // 6 to 8
			after: func(w *world, start func() *process) {
				w.insert(4) // 9 to 12
				s := start()
				w.caughtUp()
				w.must(s.stop())
			},
			drop: true, lost: to(6, 12), straddling: true, gaps: 1, deaths: 3,
		},
		"no slot on the standby, and rows in the lake on both sides": {
			before: func(w *world, _ func() *process) { w.insert(10) }, // 6 to 15, which nothing brings
			after: func(w *world, start func() *process) {
				w.temporal.hold(func(r segment.Ref) bool { return r.Rows == 10 })
				s := start()
				w.open(1)
				w.insert(7) // 16 to 22
				w.done(2)
				w.must(s.stop())
			},
			drop: true, lost: to(16, 22), gaps: 1, deaths: 4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, pgtest.Options{From: template.Data()}).keeping()
			w.cfg.ShutdownTimeout = -1
			start := func() *process { return w.start() }
			s := start()
			w.insert(5)
			w.caughtUp()
			w.must(s.stop())
			if c.before != nil {
				c.before(w, start)
			}
			other := w.coldCopy(nowhere)
			w.unpublished()
			c.after(w, start)
			w.temporal.hold(none)
			other.promote()
			var set func(*settle.Config)
			if c.drop {
				set = recreate
				_, err := other.db.Exec(t.Context(), "SELECT pg_drop_replication_slot('s')")
				w.must(err)
			}
			first := w.rows + 1
			other.insert(12) // more than are lost, so LSNs are used again
			other.takeOver()
			if !c.mayGoOn {
				w.stops(w.start())
			}
			kept := to(first, w.rows)
			if c.drop {
				kept = nil // the new slot does not bring them
			}
			deaths := w.settled(func() bool {
				ds, err := w.lake.Divergences(t.Context())
				w.must(err)
				return c.mayGoOn || c.afterwards && len(ds) > 0
			}, set)
			if deaths < c.deaths {
				t.Errorf("it died %d times, want %d", deaths, c.deaths)
			}
			r := w.goesOn()
			if left := w.temporal.running(); len(left) > 0 {
				t.Errorf("still open: %v", left)
			}
			w.has(to(1, 5), c.again, c.lost, kept, to(first+12, w.rows))
			if diverged := len(c.lost) > 0 || !c.drop; diverged != (len(r.Divergences) == 1) {
				t.Fatalf("recorded are the divergences %+v", r.Divergences)
			}
			for _, d := range r.Divergences {
				if (len(d.Straddling) > 0) != c.straddling || d.Reason == "" || d.At.IsZero() {
					t.Errorf("the divergence is %+v", d)
				}
				if !c.straddling && d.LostRows != int64(len(c.lost)) {
					t.Errorf("reported are %d lost rows, want %d", d.LostRows, len(c.lost))
				}
			}
			if r.Missing() != c.gaps {
				t.Errorf("recorded are the gaps %+v", r.Gaps)
			}
		})
	}
}

// Without a timeline of its own nothing tells the new rows of an older copy from
// those that were lost.
func TestAnOlderCopyCannotBeSettled(t *testing.T) {
	w := newWorld(t, pgtest.Options{}).keeping()
	older := w.coldCopy("")
	s := w.start()
	w.insert(5)
	w.caughtUp()
	w.must(s.stop())
	older.takeOver()
	var refused *settle.RefusedError
	if _, err := w.look(0, nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), "restored from an older copy") {
		t.Errorf("got %v", err)
	}
}
