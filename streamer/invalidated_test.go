package streamer

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/pgtest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// aStop stands for any StopError.
var aStop = errors.New("a StopError")

// refuses sees that a streamer which is started now ends with an error of that
// kind, which says all of texts, and leaves the slot as it is.
func (w *world) refuses(kind error, texts ...string) {
	w.t.Helper()
	w.stopped(w.start(), kind, texts...)
}

// stopped waits for the streamer to end like that.
func (w *world) stopped(s *process, kind error, texts ...string) {
	w.t.Helper()
	slot := w.slotText()
	err := s.ended()
	var found *StopError
	if !errors.Is(err, kind) && (kind != aStop || !errors.As(err, &found)) {
		w.t.Errorf("it ended with %v, want %v", err, kind)
	}
	for _, text := range texts {
		if !strings.Contains(fmt.Sprint(err), text) {
			w.t.Errorf("it ended with %v, which does not say %q", err, text)
		}
	}
	if st := s.Status(); st.Connected || st.Phase != Stopped {
		w.t.Errorf("after its end it is %s, connected: %v", st.Phase, st.Connected)
	}
	if got := w.slotText(); got != slot {
		w.t.Errorf("the slot was %s and is %s", slot, got)
	}
}

// slotText is where the slot stands, or that there is none.
func (w *world) slotText() (text string) {
	w.t.Helper()
	err := w.db.QueryRow(w.t.Context(), "SELECT coalesce((SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = 's'), 'none')").Scan(&text)
	w.must(err)
	return text
}

// WAL is kept for rows that cannot be uploaded. The guard says so, twice, while
// something can still be done; then Postgres gives the slot up, and the streamer
// stops. No slot is made in its place.
func TestTheGuardSpeaksBeforePostgresGivesTheSlotUp(t *testing.T) {
	for _, version := range []int{15, 18} {
		t.Run(fmt.Sprintf("postgres%d", version), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, pgtest.Options{Version: version, Settings: map[string]string{"max_slot_wal_keep_size": "96MB", "min_wal_size": "32MB"}})
			w.temporal.hold(func(segment.Ref) bool { return true })
			s := w.start(func(c *Config) { c.watchEvery = 50 * time.Millisecond })
			w.insert(3)
			w.until("the segment runs, and the guard has looked", func() bool { return len(w.temporal.running()) == 1 && s.Status().WAL != nil })
			if wal := s.Status().WAL; wal.Level != WALFine || wal.SafeBytes == nil {
				t.Errorf("at the beginning: %s: %s", wal.Level, wal)
			}
			for _, level := range []WALLevel{WALWarn, WALAlarm} {
				w.until("the guard says "+string(level), func() bool {
					w.unpublished()
					time.Sleep(60 * time.Millisecond) // for the guard to look; nothing depends on it
					return s.Status().WAL.Level == level
				})
				if isClosed(s.done) || w.count("SELECT count(*) FROM pg_replication_slots WHERE wal_status IN ('unreserved', 'lost')") > 0 {
					t.Fatalf("%s comes when the slot is already in danger", level)
				}
			}
			if !w.logged("level=WARN", "warning: Postgres keeps ", "of WAL for the slot", "What holds it: ") || !w.logged("level=ERROR", "alarm: Postgres keeps ") {
				t.Error("the log does not say it")
			}
			w.until("Postgres has given the slot up", func() bool {
				w.unpublished()
				w.exec("CHECKPOINT")
				return w.count("SELECT count(*) FROM pg_replication_slots WHERE wal_status = 'lost'") == 1
			})
			said := []string{`replication slot "s" was invalidated`, "max_slot_wal_keep_size", "rows committed since the last ack cannot be read"}
			w.stopped(s, replication.ErrSlotInvalidated, said...)
			w.refuses(replication.ErrSlotInvalidated, said...)
		})
	}
}

// Postgres 18 gives up slots that nobody has read for a while, and only those.
func TestASlotThatWasIdleForTooLongIsToldAsThat(t *testing.T) {
	w := newWorld(t, pgtest.Options{Version: 18, Settings: map[string]string{"idle_replication_slot_timeout": "1s"}})
	s := w.start()
	w.insert(3)
	w.caughtUp()
	// By the time that a slot made now is given up, this one has had its chance.
	w.exec("SELECT pg_create_logical_replication_slot('idle', 'pgoutput')")
	given := func(slot string) func() bool {
		return func() bool {
			w.exec("CHECKPOINT")
			return w.count("SELECT count(*) FROM pg_replication_slots WHERE slot_name = '"+slot+"' AND invalidation_reason = 'idle_timeout'") == 1
		}
	}
	w.until("a slot that nobody reads is given up", given("idle"))
	if isClosed(s.done) || !s.Status().Connected {
		t.Fatalf("a slot that is being read was given up: %v", s.err)
	}
	w.must(s.stop())
	w.until("the slot is given up", given("s"))
	w.refuses(replication.ErrSlotInvalidated, "nobody has read it for longer than idle_replication_slot_timeout", "set idle_replication_slot_timeout = 0")
	w.checkRows()
}
