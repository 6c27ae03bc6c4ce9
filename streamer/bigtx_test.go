package streamer

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/pgtest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// bigRows is the size of a transaction that is many times larger than the ring.
const bigRows = 100_000

// A transaction of many segments is broken off in its middle, again and again:
// the server sends all of it anew each time, and the lake has each row once.
func TestATransactionThatIsBrokenOffInItsMiddleLeavesNoDuplicate(t *testing.T) {
	ends := map[string]func(w *world, s *process) *process{
		"the walsender dies": func(w *world, s *process) *process {
			reconnects := s.Status().Reconnects
			w.exec("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active_pid IS NOT NULL")
			w.until("it streams again", func() bool { st := s.Status(); return st.Reconnects > reconnects && st.Connected })
			return s
		},
		"a graceful stop": func(w *world, s *process) *process {
			w.must(s.stop())
			return w.startBig(briefly)
		},
		"the server crashes": func(w *world, s *process) *process {
			w.must(w.pg.Restart(w.t.Context(), pgtest.Immediate))
			w.connect()
			return s
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// A status every second, so that a dead connection is noticed soon.
			w := newWorld(t, pgtest.Options{Settings: map[string]string{"wal_sender_timeout": "4s"}})
			s := w.startBig(briefly)
			w.insert(5)
			w.caughtUp()
			for _, upTo := range []uint64{bigRows / 4, bigRows / 2} {
				// Uploads stop there, so the ring is full in the middle.
				w.temporal.hold(func(r segment.Ref) bool { return r.Rows > 1 && uint64(r.First.Ordinal) >= upTo })
				if w.rows < bigRows {
					w.insert(bigRows)
				}
				var last change.Position
				w.until(fmt.Sprintf("%d rows are in the lake and the ring is full", upTo), func() bool {
					refs := w.temporal.in(segment.Completed)
					last = refs[len(refs)-1].Last
					return uint64(last.Ordinal) >= upTo-bigRows/20 && s.Status().Ring.Full
				})
				if got := w.confirmed(); got > last.LSN {
					t.Errorf("the slot stands at %s, and the transaction that ends at %s is not in the lake yet", got, last.LSN)
				}
				s = end(w, s)
			}
			w.temporal.hold(func(segment.Ref) bool { return false })
			w.caughtUp()
			w.must(s.stop())
			w.checkRows()
		})
	}
}

// startBig starts a streamer whose ring holds a tenth of the transaction, and a
// segment a quarter of that.
func (w *world) startBig(change func(*Config)) *process {
	w.t.Helper()
	return w.start(func(c *Config) { c.Ring.SegmentRows, c.Ring.MaxChanges = bigRows/40, bigRows/10 }, change)
}

// briefly has a graceful stop wait for no upload that is held.
func briefly(c *Config) { c.ShutdownTimeout = 100 * time.Millisecond }
