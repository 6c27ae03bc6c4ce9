package streamer

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/pgtest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// While A was without a connection, B has had the slot and moved it: A's life
// is over, and nothing is wrong.
func TestAStreamerThatGetsItsSlotBackBeginsANewLife(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	a := w.start()
	w.insert(3)
	w.caughtUp()
	b := w.start()
	w.until("B has the slot", func() bool {
		if b.Status().Connected {
			return true
		}
		if a.Status().Connected {
			w.exec("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active_pid IS NOT NULL")
		}
		return false
	})
	w.insert(4)
	w.caughtUp()
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	w.until("A has the slot", func() bool { return a.Status().Connected || isClosed(a.done) })
	w.insert(5)
	w.caughtUp()
	w.checkRows()
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// The message does not fit into the ring when the stop begins, so it is not in
// the lake when everything else is, and the slot must not pass it.
func TestAStopDoesNotPassAMessageThatTheRingHadNoRoomFor(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	w.cfg.Messages = true
	w.temporal.hold(func(segment.Ref) bool { return true })
	s := w.start(func(c *Config) { c.Ring.MaxChanges = 3 })
	w.insert(3)
	w.until("a segment runs", func() bool { return len(w.temporal.running()) == 1 })
	w.exec("SELECT pg_logical_emit_message(false, 'p', 'no room')")
	w.until("the ring is full", func() bool { return s.Status().Ring.Full })
	s.mu.Lock()
	l := s.life
	s.mu.Unlock()
	s.cancel()
	w.until("the stop has begun", l.draining)
	w.temporal.hold(func(segment.Ref) bool { return false })
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.caughtUp()
	w.checkRows()
	_, rows := w.temporal.uploaded()
	if last := rows[len(rows)-1].Raw; !strings.HasSuffix(last, "no room") {
		t.Errorf("the last row in the lake is %q, not the message", last)
	}
}

// The life ends between the moment in which a new connection is made and that
// in which it is the present one, so that nobody has closed it.
func TestAConnectionThatComesWhenTheLifeHasEndedIsClosed(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	s, err := New(w.cfg, Deps{Tracker: w.temporal, Lake: w.lake, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	first, err := s.connectFirst(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.newLife(t.Context(), segment.Location{Instance: "i"}, first)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ended := make(chan error, 1)
	go func() { ended <- l.stream(ctx) }()
	select {
	case <-ended:
	case <-time.After(bound):
		t.Error("the connection is still read")
		l.disconnect()
		<-ended
	}
}

// An idle ack on a timeline that the server's history does not have may lie
// above rows that are not in the lake.
func TestAnAckOfAnUnknownTimelineIsAStop(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	id, err := w.lake.ReadIdentity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rec := id.FirstAck()
	rec.Timeline++
	_, err = checkRecord(rec, &connection{
		system:  replication.System{Timeline: id.Timeline},
		history: replication.History{Current: id.Timeline},
		slot:    replication.SlotInfo{Name: "s", ConfirmedFlush: rec.Ack},
		flushed: rec.Ack + 1000,
	})
	if err == nil {
		t.Error("the record is taken")
	}
}

func TestAStopThatRunsOutOfTimeRecordsWhatHasFinished(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	s := w.start(func(c *Config) { c.ShutdownTimeout = -1 })
	w.insert(3)
	w.caughtUp()
	w.insert(2)
	w.until("the second segment is there", func() bool {
		refs, _ := w.temporal.uploaded()
		return len(refs) == 2
	})
	w.temporal.hold(func(segment.Ref) bool { return true })
	w.insert(1)
	w.until("the third is under way", func() bool { return len(w.temporal.running()) == 1 && s.Status().Ring.Segments == 1 })
	third := w.temporal.running()[0]
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	rec, _, err := w.lake.ReadAck(t.Context())
	if err != nil || rec.Last != third.Follows {
		t.Errorf("the lake has %s on record (%v), and everything up to %s has finished", rec.Last, err, third.Follows)
	}
	if got := w.confirmed(); got != rec.Ack {
		t.Errorf("the slot stands at %s, recorded is %s", got, rec.Ack)
	}
}

func TestAnAckThatWasRecordedAndNotReportedIsReported(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	s := w.start()
	w.insert(3)
	w.caughtUp()
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	w.exec("CREATE TABLE other ()")
	rec, etag, err := w.lake.ReadAck(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rec.Ack, rec.Seq = w.walEnd(), rec.Seq+1
	if _, err := w.lake.WriteAck(t.Context(), rec, etag); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.until("the slot stands where the record does", func() bool { return w.confirmed() >= rec.Ack })
}
