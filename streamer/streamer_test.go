package streamer

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/pgtest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

func TestRowsReachTheLakeOnceAndTheSlotFollows(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	s := w.start()
	for _, n := range []int{1, 3, 25, 1, 1, 9, 60} {
		w.insert(n)
	}
	w.caughtUp()
	w.checkRows()
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
}

func TestTheAckStandsStillWhileOneSegmentIsHeldAndJumpsWhenItEnds(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	s := w.start()
	w.insert(3)
	w.caughtUp()
	before := w.confirmed()

	var first segment.Ref
	w.temporal.hold(func(r segment.Ref) bool {
		if first.First.IsZero() {
			first = r
		}
		return r.First == first.First
	})
	for range 20 {
		w.insert(10)
	}
	w.until("later segments have finished behind the held one", func() bool {
		refs, _ := w.temporal.uploaded()
		return len(refs) >= 10 && len(w.temporal.running()) == 1
	})
	if got := w.confirmed(); got != before {
		t.Errorf("confirmed_flush_lsn moved from %s to %s past a segment that is not in the lake", before, got)
	}
	w.until("the status shows the held one, and those that have finished behind it", func() bool {
		st := s.Status()
		return len(st.InFlight) == 1 && st.InFlight[0].Ref.First == first.First && len(st.Ahead) >= 10 && len(st.Ahead) == st.Ring.FinishedSegments
	})
	w.temporal.hold(func(segment.Ref) bool { return false })
	w.caughtUp()
	w.until("the status shows no finished ones any more", func() bool { return len(s.Status().Ahead) == 0 })
	w.checkRows()
}

func TestARestartAdoptsWhatWasInFlight(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	// Every other segment is held; the streamer dies with all of them recorded.
	n := 0
	decided := map[string]bool{}
	w.temporal.hold(func(r segment.Ref) bool {
		id := r.WorkflowID()
		if _, ok := decided[id]; !ok {
			n++
			decided[id] = n%2 == 1
		}
		return decided[id]
	})
	s := w.start(func(c *Config) { c.ShutdownTimeout = time.Millisecond })
	for range 12 {
		w.insert(7)
	}
	w.insert(95) // fills segments by itself
	w.until("some segments are in flight and some are finished", func() bool {
		refs, _ := w.temporal.uploaded()
		return len(refs) >= 5 && len(w.temporal.running()) >= 5
	})
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	recorded := len(w.temporal.entries)
	starts := w.temporal.starts
	w.temporal.hold(func(segment.Ref) bool { return false })

	// Other limits now: the recorded boundaries must hold all the same.
	s = w.start(func(c *Config) { c.Ring.SegmentRows = 33 })
	w.insert(5)
	w.caughtUp()
	w.checkRows()
	if s.Status().Adopted == 0 {
		t.Error("nothing was adopted")
	}
	if w.temporal.starts == starts || len(w.temporal.entries) <= recorded {
		t.Error("the second streamer started nothing")
	}
}

func TestATerminatedSegmentIsStartedAgain(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	seen := &watcher{}
	w.observer = seen
	w.temporal.hold(func(segment.Ref) bool { return true })
	w.start()
	w.insert(5)
	w.until("the segment runs", func() bool { return len(w.temporal.running()) == 1 })
	w.temporal.hold(func(segment.Ref) bool { return false })
	w.caughtUp()

	w.temporal.hold(func(segment.Ref) bool { return true })
	w.insert(5)
	w.until("the segment runs", func() bool { return len(w.temporal.running()) == 1 })
	w.temporal.terminate(w.temporal.running()[0])
	w.temporal.hold(func(segment.Ref) bool { return false })
	w.caughtUp()
	w.checkRows()
	if n := seen.restarted("closed"); n != 1 {
		t.Errorf("%d segments are counted as started again", n)
	}
}

func TestABrokenSegmentIsAdoptedBeforeItIsStartedAgain(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	ref := w.leaveRunning(func() { w.insert(8) })
	w.temporal.terminate(ref)
	w.temporal.hold(func(segment.Ref) bool { return false })
	w.start(func(c *Config) { c.Ring.SegmentRows = 3 })
	w.caughtUp()
	w.checkRows()
	refs, _ := w.temporal.uploaded()
	if refs[0].First != ref.First || refs[0].Last != ref.Last {
		t.Errorf("segment %s to %s was uploaded, recorded was %s to %s", refs[0].First, refs[0].Last, ref.First, ref.Last)
	}
}

func TestASecondStreamerStandsByAndTakesOver(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	first := w.start()
	w.insert(4)
	w.caughtUp()
	second := w.start()
	w.until("the second stands by", func() bool { return strings.HasPrefix(second.Status().State, "standby") })
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	w.insert(4)
	w.caughtUp()
	w.checkRows()
}

func TestPostgresMayCrashAndComeBack(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	s := w.start()
	w.insert(30)
	w.caughtUp()
	for range 2 {
		if err := w.pg.Restart(t.Context(), pgtest.Immediate); err != nil {
			t.Fatal(err)
		}
		w.connect()
		w.insert(30)
		w.caughtUp()
	}
	w.checkRows()
	if s.Status().Reconnects == 0 {
		t.Error("the streamer does not say that it reconnected")
	}
}

func TestAFastShutdownDoesNotWaitForAHeldUpload(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	w.temporal.hold(func(segment.Ref) bool { return true })
	w.start()
	w.insert(30)
	w.until("segments are in flight", func() bool { return len(w.temporal.running()) == 3 })
	if err := w.pg.Restart(t.Context(), pgtest.Fast); err != nil {
		t.Fatal(err)
	}
	w.temporal.hold(func(segment.Ref) bool { return false })
	w.connect()
	w.caughtUp()
	w.checkRows()
}

func TestAMessageIsTheSameHoweverOftenItIsRead(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	w.cfg.Messages = true
	s := w.start()
	w.insert(3)
	w.caughtUp()
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	// The first thing after the ack, so that nothing of this connection says
	// when it was: the record must.
	w.exec("SELECT pg_logical_emit_message(false, 'p', 'without a transaction')")
	w.exec("SELECT pg_logical_emit_message(true, 'p', 'with one')")
	w.leaveRunning(func() {})
	w.temporal.hold(func(segment.Ref) bool { return false })
	w.start()
	w.caughtUp()
	w.checkRows()
	_, rows := w.temporal.uploaded()
	var messages []string
	for _, r := range rows {
		if r.Raw[0] == 'M' {
			messages = append(messages, r.Raw)
		}
	}
	if len(messages) != 2 || !strings.HasSuffix(messages[0], "without a transaction") || !strings.HasSuffix(messages[1], "with one") {
		t.Errorf("messages in the lake: %q", messages)
	}
	refs, _ := w.temporal.uploaded()
	for _, ref := range refs {
		if ref.Day != refs[0].Day {
			t.Errorf("segment %s is of day %s, the rows before it of %s", ref.First, ref.Day, refs[0].Day)
		}
	}
}

func TestWhatCouldLoseRowsIsAStop(t *testing.T) {
	tests := map[string]struct {
		before func(w *world) // with no streamer running, rows in the lake
		want   string
	}{
		"a slot that was advanced by hand": {
			before: func(w *world) {
				w.insert(5)
				w.exec("SELECT pg_replication_slot_advance('s', pg_current_wal_lsn())")
			},
			want: "ahead of what the lake has on record",
		},
		"a slot that was made again": {
			before: func(w *world) {
				w.insert(5)
				w.exec("SELECT pg_drop_replication_slot('s')")
				w.exec("SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
			},
			want: "ahead of what the lake has on record",
		},
		"a record of other rows": {
			before: func(w *world) {
				ref := w.leaveRunning(func() { w.insert(5) })
				w.temporal.rewrite(ref, func(r *segment.Ref) { r.Digest++ })
			},
			want: "has the digest",
		},
		"a record of another lake": {
			before: func(w *world) {
				ref := w.leaveRunning(func() { w.insert(5) })
				w.temporal.rewrite(ref, func(r *segment.Ref) { r.Lake = "s3://elsewhere" })
			},
			want: "does not fit this pipeline",
		},
		"a recorded boundary beyond the server's WAL": {
			before: func(w *world) {
				ref := w.leaveRunning(func() { w.insert(5) })
				w.temporal.rewrite(ref, func(r *segment.Ref) { r.Last.LSN += 1 << 40 })
			},
			want: "WAL ends at",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pgtest.Options{})
			s := w.start()
			w.insert(5)
			w.caughtUp()
			if err := s.stop(); err != nil {
				t.Fatal(err)
			}
			test.before(w)
			confirmed := w.confirmed()
			err := w.start().ended()
			var stopped *StopError
			if !errors.As(err, &stopped) || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want a stop that says %q", err, test.want)
			}
			if got := w.confirmed(); got != confirmed {
				t.Errorf("confirmed_flush_lsn moved from %s to %s", confirmed, got)
			}
		})
	}
}
