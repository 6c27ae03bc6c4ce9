package streamer

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/pgtest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer/ring"
)

// refusing is a store that refuses the record of the ack while it is told to.
type refusing struct {
	*lake.Memory
	off atomic.Bool
}

func (r *refusing) Put(ctx context.Context, key string, body []byte, cond lake.Condition) (string, error) {
	if r.off.Load() && strings.HasSuffix(key, "ack.json") {
		return "", &lake.Error{Op: "write", Object: key, Kind: lake.Unavailable, Err: errors.New("the store says no")}
	}
	return r.Memory.Put(ctx, key, body, cond)
}

// The segments finish, and the lake does not take the record: Postgres is told
// nothing, and the status says why.
func TestAnAckThatCannotBeRecordedIsNotReportedAndTheStatusSaysWhy(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	store := &refusing{Memory: w.store}
	w.lake = lake.New(w.lake.URL(), store)
	s := w.start()
	w.insert(10)
	w.caughtUp()
	store.off.Store(true)
	stands := w.confirmed()
	w.insert(10)
	w.until("the write is refused", func() bool {
		r := s.Status().Recording
		return r != nil && strings.Contains(r.Error, "the store says no")
	})
	w.until("every segment has finished", func() bool { return len(s.Status().InFlight) == 0 })
	if now := w.confirmed(); now != stands {
		t.Errorf("Postgres was told %s, and the lake has %s on record", now, stands)
	}
	store.off.Store(false)
	w.caughtUp()
	w.until("nothing is being written", func() bool { return s.Status().Recording == nil })
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
}

// A record a second is enough while more follows. When all is finished, whoever
// waits for the ack need not wait for the second to pass.
func TestTheAckIsRecordedAtOnceWhenEverythingIsFinished(t *testing.T) {
	store := lake.New("file:///lake", lake.NewMemory())
	relation := &change.Relation{Namespace: "public", Name: "t"}
	l := &life{buf: newBuffer(ring.Config{}, ring.Start{}), lake: store, at: segment.Location{Instance: "test"}, log: slog.New(slog.DiscardHandler)}
	k := &keeper{l: l, written: time.Now()}
	in := intake{buffer: l.buf}
	row := func(lsn change.LSN) ring.SegmentID {
		t.Helper()
		c := change.Change{Position: change.Position{Timeline: 1, LSN: lsn}, Relation: relation, Operation: change.Insert, Raw: []byte("I")}
		if err := in.add(t.Context(), nil, nil, &c); err != nil {
			t.Fatal(err)
		}
		in.mark(lsn + 1)
		in.rest()
		view, ok, _ := l.buf.propose(change.TimeOf(time.Now()), true)
		if !ok {
			t.Fatal("nothing to cut")
		}
		id, err := l.buf.ring.Cut(view)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	first, second := row(0x100), row(0x200)
	l.buf.finish(first)
	if s := k.step(t.Context(), false); s.err != nil || k.rec.Ack != 0 || s.again > recordEvery {
		t.Errorf("with a segment in flight the record is %s, and again in %s, %v; want none before the second has passed", k.rec.Ack, s.again, s.err)
	}
	l.buf.finish(second)
	if s := k.step(t.Context(), false); s.err != nil || k.rec.Ack != 0x201 {
		t.Errorf("with everything finished the record is %s, again in %s, %v; want 0/201 at once", k.rec.Ack, s.again, s.err)
	}
	in.keepalive(0x300)
	in.rest()
	if s := k.step(t.Context(), false); s.err != nil || k.rec.Ack != 0x201 || s.again <= recordEvery {
		t.Errorf("for a keepalive alone the record is %s, again in %s, %v; want it to wait", k.rec.Ack, s.again, s.err)
	}
}
