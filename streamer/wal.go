package streamer

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// WAL is what Postgres keeps for the slot, and what that comes to.
type WAL struct {
	Level WALLevel `json:"level"`
	// Since is when the level was reached.
	Since time.Time `json:"since"`
	// RetainedBytes of WAL are kept for the slot; SafeBytes may still be written
	// before it can be lost: nil without max_slot_wal_keep_size, and of a slot
	// that is lost.
	RetainedBytes int64  `json:"retained_bytes"`
	SafeBytes     *int64 `json:"safe_bytes"`
	// BytesPerSecond is how fast the kept WAL grows, or, negative, shrinks, over
	// the last ten minutes; nil until a minute of them was seen.
	BytesPerSecond *float64 `json:"bytes_per_second"`
	// HoursLeft is when the slot can be lost if that goes on; nil without a
	// limit, or while the kept WAL does not grow.
	HoursLeft *float64 `json:"hours_left"`
	// Lost says that WAL which the slot needed is gone.
	Lost bool `json:"lost"`
	// Held says what keeps the WAL, and Do what to do about it; empty at level
	// fine, and where nobody has looked.
	Held string `json:"held,omitempty"`
	Do   string `json:"do,omitempty"`
}

// used is the share of max_slot_wal_keep_size that is in use.
func (w WAL) used() float64 {
	safe := max(*w.SafeBytes, 0)
	if w.RetainedBytes+safe <= 0 {
		return 0
	}
	return float64(w.RetainedBytes) / float64(w.RetainedBytes+safe)
}

// String says all of it in words.
func (w WAL) String() string {
	s := fmt.Sprintf("Postgres keeps %s of WAL for the slot", BytesText(w.RetainedBytes))
	if r := w.BytesPerSecond; r != nil {
		switch {
		case *r >= 1:
			s += fmt.Sprintf(", %s more each second", BytesText(int64(*r)))
		case *r <= -1:
			s += fmt.Sprintf(", %s less each second", BytesText(int64(-*r)))
		default:
			s += ", and no more by the minute"
		}
	}
	switch {
	case w.Lost:
		s += "; WAL that the slot needed is gone, and the slot is lost"
	case w.HoursLeft != nil:
		s += fmt.Sprintf("; at this rate the slot can be lost in %s (after another %s)", hoursText(*w.HoursLeft), BytesText(max(*w.SafeBytes, 0)))
	case w.SafeBytes != nil:
		s += fmt.Sprintf("; the slot can be lost after another %s", BytesText(max(*w.SafeBytes, 0)))
	default:
		s += "; max_slot_wal_keep_size sets no limit, so the disk is the limit"
	}
	if w.Held != "" {
		s += ". What holds it: " + w.Held + "; " + w.Do
	}
	return s
}

// BytesText writes a number of bytes for people.
func BytesText(n int64) string {
	const units = "KMGTP"
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	v, u := float64(n)/(1<<10), 0
	for v >= 1024 && u < len(units)-1 {
		v, u = v/1024, u+1
	}
	return fmt.Sprintf("%.1f %ciB", v, units[u])
}

func hoursText(h float64) string {
	if h < 2 {
		return fmt.Sprintf("%.0f minutes", h*60)
	}
	return fmt.Sprintf("%.1f hours", h)
}

// walWatch is the guard with what it has found last.
type walWatch struct {
	guard walGuard // of the goroutine that watches

	mu   sync.Mutex
	last *WAL // nil before the first look
}

func (w *walWatch) get() *WAL {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

func (w *walWatch) set(wal WAL) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = &wal
}

// watchWAL takes in a look at the slot and logs what has to be known of it. It
// belongs to one goroutine.
func (s *Streamer) watchWAL(ctx context.Context, slot replication.SlotInfo) {
	now := time.Now()
	wal, say := s.wal.guard.take(now, slot)
	if wal.Level != WALFine {
		wal.Held, wal.Do = holder(s.Status(), slot, now)
	}
	s.wal.set(wal)
	if !say {
		return
	}
	level, what := slog.LevelInfo, "the WAL that is kept for the slot is no worry any more: "
	switch wal.Level {
	case WALAlarm:
		level, what = slog.LevelError, "alarm: "
	case WALWarn:
		level, what = slog.LevelWarn, "warning: "
	}
	s.deps.Logger.Log(ctx, level, what+wal.String(), "slot", slot.Name, "level", wal.Level, "since", wal.Since,
		"retained_bytes", wal.RetainedBytes, "wal_status", slot.WALStatus)
}

// heldLong is how long a segment is in flight until it is what holds the WAL,
// and not one of many that come and go.
const heldLong = time.Minute

// holder says what keeps the WAL of a slot, and what to do about it.
func holder(st Status, slot replication.SlotInfo, now time.Time) (what, do string) {
	switch {
	case !st.Connected && slot.Active:
		return fmt.Sprintf("another connection has the slot (process %d of the server)", slot.ActivePID),
			"look at the streamer that it is of; if there is none any more, SELECT pg_terminate_backend(" + fmt.Sprint(slot.ActivePID) + ")"
	case !st.Connected:
		return "nobody reads the slot (" + st.State + ")",
			"mend what keeps the streamer from it"
	case slot.LagBytes < slot.RetainedBytes/2:
		return fmt.Sprintf("a transaction that has been open for long (the ack itself is only %s behind)", BytesText(slot.LagBytes)),
			"if it was forgotten, end it: SELECT pid, usename, state, xact_start FROM pg_stat_activity WHERE backend_xid IS NOT NULL ORDER BY xact_start, or SELECT * FROM pg_prepared_xacts"
	case len(st.InFlight) > 0 && now.Sub(st.InFlight[0].Since) >= heldLong:
		f := st.InFlight[0]
		return fmt.Sprintf("the first segment in flight, %s, dispatched %s ago", f.Ref.First, now.Sub(f.Since).Round(time.Second)),
			"its workflow " + f.Ref.WorkflowID() + " in the Temporal UI says why it is not in the lake yet"
	}
	return "rows that are on their way",
		"if it does not shrink, the pipeline is slower than the database writes: add workers or worker.concurrency"
}
