package streamer

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/pgtest"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// watcher is an Observer that counts.
type watcher struct {
	mu     sync.Mutex
	causes map[string]int
	rows   int64
	oldest time.Duration
	ends   map[string]int
}

func (w *watcher) Restarted(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ends == nil {
		w.ends = map[string]int{}
	}
	w.ends[why]++
}

func (w *watcher) restarted(why string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ends[why]
}

func (w *watcher) Reconnected(cause string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.causes == nil {
		w.causes = map[string]int{}
	}
	w.causes[cause]++
}

func (w *watcher) InLake(rows int64, sinceCommit time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rows += rows
	w.oldest = max(w.oldest, sinceCommit)
}

func TestAStatusCountsWhatCameAndShowsTheSlot(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	seen := &watcher{}
	w.observer = seen
	s := w.start()
	w.insert(25)
	w.exec("UPDATE t SET v = 'x' WHERE id <= 3")
	w.exec("DELETE FROM t WHERE id = 1")
	w.caughtUp()
	w.until("the slot was looked at", func() bool { return s.Status().Slot != nil })
	st := s.Status()
	for op, want := range map[string]int64{"insert": 25, "update": 3, "delete": 1, "truncate": 0, "message": 0} {
		if got := st.ReceivedChanges[op]; got != want {
			t.Errorf("%d changes are counted as %s, want %d", got, op, want)
		}
	}
	if st.ReceivedBytes < 29*10 {
		t.Errorf("counted %d bytes", st.ReceivedBytes)
	}
	if st.Phase != Streaming || st.Slot == nil || st.Slot.Name != "s" || time.Since(st.Reported) > bound {
		t.Errorf("phase %s, slot %+v, reported %s", st.Phase, st.Slot, st.Reported)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	seen.mu.Lock()
	if seen.rows != 29 || seen.oldest <= 0 || seen.oldest > bound {
		t.Errorf("observed %d rows in the lake, the oldest after %s", seen.rows, seen.oldest)
	}
	seen.mu.Unlock()
	// What an ended life has received stays counted.
	if st := s.Status(); st.Phase != Stopped || st.ReceivedChanges["insert"] != 25 {
		t.Errorf("after the stop: phase %s, %v", st.Phase, st.ReceivedChanges)
	}
}

func TestAReconnectionHasACause(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	seen := &watcher{}
	w.observer = seen
	s := w.start()
	w.insert(5)
	w.caughtUp()
	w.exec("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = 's'")
	w.until("a reconnection", func() bool {
		seen.mu.Lock()
		defer seen.mu.Unlock()
		return seen.causes["server_shutdown"] == 1
	})
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
}

func TestCausesAreFew(t *testing.T) {
	for want, err := range map[string]error{
		"server_shutdown": fmt.Errorf("receive: %w", replication.ErrServerShutdown),
		"slot_in_use":     &replication.Error{Kind: replication.ErrSlotInUse, Text: "x"},
		"connection_lost": errors.New("read: connection reset by peer"),
	} {
		if got := causeOf(err); got != want {
			t.Errorf("%v is %s, want %s", err, got, want)
		}
	}
}

func TestPhases(t *testing.T) {
	for _, tc := range []struct {
		connected bool
		state     string
		want      Phase
	}{
		{true, "streaming", Streaming},
		{false, noteStandby, Standby},
		{false, noteStopped, Stopped},
		{false, "waiting for Postgres: connection refused", Connecting},
	} {
		if got := phaseOf(tc.connected, tc.state); got != tc.want {
			t.Errorf("%q is %s, want %s", tc.state, got, tc.want)
		}
	}
}

func TestATallyCountsByOperation(t *testing.T) {
	var a, b tally
	a.add(&change.Change{Operation: change.Insert, Raw: make([]byte, 3)})
	b.add(&change.Change{Operation: change.Truncate, Raw: make([]byte, 4)})
	b.add(&change.Change{Operation: 99})
	a.addAll(b)
	if m := a.byOperation(); m["insert"] != 1 || m["truncate"] != 1 || m["update"] != 0 || a.bytes != 7 {
		t.Errorf("got %v, %d bytes", m, a.bytes)
	}
}
