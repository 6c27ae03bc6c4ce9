package streamer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/streamer/ring"
)

// signal wakes at most one waiter, and remembers one wake-up for a waiter that
// comes later.
type signal chan struct{}

func newSignal() signal { return make(chan struct{}, 1) }

func (s signal) raise() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// buffer is the ring with a lock and wake-ups around it. The receiver is its
// only writer, through an intake, and the dispatcher the only one that cuts; both
// may block here, nobody else does.
type buffer struct {
	mu   sync.Mutex
	ring *ring.Ring
	// received counts what was added.
	received tally
	// watching is set while the dispatcher waits for particular changes (an
	// adopted boundary), so that it is woken for every one.
	watching bool
	// armed is set while the dispatcher sleeps until the oldest waiting
	// transaction is old enough, so that it need not be woken for another one.
	armed bool

	room  signal // for the receiver: bytes were freed, or the bound was lifted
	ready signal // for the dispatcher: a proposal may be due
	acked signal // for the keeper: the ring's ack moved
}

func newBuffer(cfg ring.Config, start ring.Start) *buffer {
	return &buffer{ring: ring.New(cfg, start), room: newSignal(), ready: newSignal(), acked: newSignal()}
}

// propose asks the ring for a segment, or says in what time one is due by age.
func (b *buffer) propose(now change.Time, drain bool) (v ring.View, ok bool, due time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v, ok = b.ring.Propose(now, drain)
	due, b.armed = b.ring.NextDue(now)
	if !b.armed {
		due = time.Hour
	}
	return v, ok, due
}

// finish marks a segment and walks.
func (b *buffer) finish(id ring.SegmentID) {
	b.mu.Lock()
	moved := b.ring.Finish(id)
	b.mu.Unlock()
	b.room.raise()
	if moved {
		b.acked.raise()
	}
}

func (b *buffer) ack() ring.Ack {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ring.Ack()
}

// settled says that every change that was received is finished.
func (b *buffer) settled() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ring.Settled()
}

func (b *buffer) stats() (ring.Stats, tally) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ring.Stats(), b.received
}

func (b *buffer) lastReceived() change.Position {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ring.LastReceived()
}

// locked runs f with the ring to itself.
func (b *buffer) locked(f func(r *ring.Ring)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(b.ring)
}

// errDraining says that a graceful stop has begun, and so that what was waited
// for will not come.
var errDraining = errors.New("stopping")

// errEnded says that the connection has ended while a change of it waited for
// room. The next one brings the change again.
var errEnded = errors.New("the connection has ended")

// waitFor blocks until the changes up to last are waiting in the ring and
// returns them; partial also returns when some of them are. beyond reports that
// the stream has passed last without a change there. When nothing but these
// changes holds the ring's bytes, the bound is lifted for them.
func (b *buffer) waitFor(ctx context.Context, drain <-chan struct{}, last change.Position, partial bool) (v ring.View, reached, beyond bool, err error) {
	b.mu.Lock()
	b.watching = true
	defer func() {
		b.watching = false
		b.ring.Lift(false)
		b.mu.Unlock()
	}()
	for {
		v, reached, beyond = b.ring.Waiting(last)
		if reached || beyond || partial && v.Rows > 0 {
			return v, reached, beyond, nil
		}
		b.ring.Lift(!partial)
		b.room.raise()
		b.mu.Unlock()
		select {
		case <-b.ready:
			b.mu.Lock()
		case <-drain:
			b.mu.Lock()
			return v, false, false, errDraining
		case <-ctx.Done():
			b.mu.Lock()
			return v, false, false, ctx.Err()
		}
	}
}
