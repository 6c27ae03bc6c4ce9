package streamer

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/pgtest"
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
