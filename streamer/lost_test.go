package streamer

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/pgtest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// lostRows are ways in which rows that the new server lacks have left a trace.
// In each a streamer is left running.
var lostRows = map[string]struct {
	// before runs before the server is copied, without a streamer.
	before func(w *world)
	after  func(w *world) *process
	// forgotten: only the process that recorded them can know.
	forgotten bool
}{
	"rows in the lake, on record": {
		after: func(w *world) *process {
			s := w.start(now)
			w.insert(5)
			w.caughtUp()
			return s
		},
	},
	"rows in the lake, not on record yet": {
		after: func(w *world) *process {
			s, ref := w.recorded()
			w.stored(ref, w.lake.PutSegment)
			w.forget(ref)
			return s
		},
	},
	"a recorded segment that begins before the end and goes beyond": {
		before: func(w *world) { w.insert(3) },
		after: func(w *world) *process {
			s, _ := w.recorded()
			return s
		},
	},
	"a recorded segment that begins beyond the end": {
		after: func(w *world) *process {
			s, _ := w.recorded()
			return s
		},
		forgotten: true,
	},
}

// recorded has a streamer record the next rows, and holds their upload.
func (w *world) recorded() (*process, segment.Ref) {
	w.t.Helper()
	w.temporal.hold(func(segment.Ref) bool { return true })
	w.insert(3)
	s := w.start(now)
	w.until("the segment runs", func() bool { return len(w.temporal.running()) == 1 && s.Status().Ring.Segments == 1 })
	return s, w.temporal.running()[0]
}

func now(c *Config) { c.ShutdownTimeout = -1 }

// The server is replaced by one that lacks rows which are recorded: by a
// standby that was behind, or by an older copy, which does not even say so by
// its timeline. The streamer stops and leaves the slot where it is: one that
// was running all the time, and every one that is started later.
func TestRowsThatTheServerHasLostAreAStop(t *testing.T) {
	for by, primary := range map[string]string{"a standby that was behind": nowhere, "an older copy": ""} {
		for what, lost := range lostRows {
			t.Run(by+"/"+what, func(t *testing.T) {
				w := newWorld(t, pgtest.Options{})
				s := w.start()
				w.insert(5)
				w.caughtUp()
				w.must(s.stop())
				common, _, err := w.lake.ReadAck(t.Context())
				w.must(err)
				if lost.before != nil {
					lost.before(w)
				}
				other := w.coldCopy(primary)
				w.unpublished()
				s = lost.after(w)
				recorded := len(w.temporal.running())
				if primary != "" {
					other.promote()
				}
				other.insert(2) // they take the place of those that are lost
				other.takeOver()
				// What was on record before the copy both servers have, and their
				// slots may stand there.
				confirmed := max(w.confirmed(), common.Ack)
				w.stopsForLost(s, confirmed)
				if !lost.forgotten {
					w.stopsForLost(w.start(now), confirmed)
				}
				if n := len(w.temporal.running()); n != recorded {
					t.Errorf("%d segments are recorded and not finished, it were %d before", n, recorded)
				}
			})
		}
	}
}

// stopsForLost waits for the streamer to stop because of lost rows, with the
// slot untouched.
func (w *world) stopsForLost(s *process, confirmed change.LSN) {
	w.t.Helper()
	err := s.ended()
	var stopped *StopError
	if !errors.As(err, &stopped) || !strings.Contains(err.Error(), "rows went to the lake that this database does not have") {
		w.t.Errorf("got %v, want a stop for rows that the database does not have", err)
	}
	if got := w.confirmed(); got > confirmed {
		w.t.Errorf("confirmed_flush_lsn stands at %s, beyond %s", got, confirmed)
	}
}

// Nothing was recorded of the rows that are lost, so nothing is wrong: but what
// the older server commits now stands below what was received.
func TestRowsThatWereReceivedAndLostHideNoNewOnes(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	s := w.start()
	w.insert(5)
	w.caughtUp()
	w.must(s.stop())
	older := w.coldCopy("")
	kept := w.rows
	w.insert(1)
	w.unpublished()
	w.insert(1)
	end := w.walEnd()
	s = w.start(now, func(c *Config) { c.Ring.MaxAge = time.Hour })
	w.until("the rows are received", func() bool {
		return w.lsn("SELECT coalesce(max(write_lsn), '0/0')::text FROM pg_stat_replication") >= end
	})
	w.rows = kept
	older.insert(10)
	older.takeOver()
	w.until("the new rows are in the lake", func() bool {
		refs, _ := w.temporal.uploaded()
		return len(refs) == 2 || isClosed(s.done)
	})
	w.must(s.stop())
	w.checkRows()
}

// The database was quiet, and its ack stands beyond the WAL of the older copy
// that is put in its place while the process lives. No row is lost, and yet the
// remembered ack must not be told: the copy would take it, and skip new rows.
func TestAnOlderCopyIsToldNoAckBeyondItsOwnWAL(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	s := w.start()
	w.insert(5)
	w.caughtUp()
	w.must(s.stop())
	older := w.coldCopy("")
	s = w.start(now)
	w.until("the streamer streams", func() bool { return s.Status().Connected })
	for range 5 {
		w.unpublished()
	}
	w.caughtUp()
	ack := w.confirmed()
	older.insert(3)
	older.takeOver()
	if end := w.walEnd(); end >= ack {
		t.Fatalf("the copy's WAL ends at %s, which is to lie below the ack %s", end, ack)
	}
	began := w.confirmed()
	w.until("the streamer stops", func() bool {
		if got, end := w.confirmed(), w.walEnd(); got > end {
			t.Fatalf("confirmed_flush_lsn stands at %s, and the WAL ends at %s", got, end)
		}
		return isClosed(s.done)
	})
	var stopped *StopError
	if err := s.ended(); !errors.As(err, &stopped) || !strings.Contains(err.Error(), "restored from an older copy") {
		t.Errorf("got %v, want a stop that tells of the older copy", err)
	}
	if got := w.confirmed(); got != began {
		t.Errorf("confirmed_flush_lsn moved from %s to %s", began, got)
	}
}
