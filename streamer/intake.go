package streamer

import (
	"context"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// intake is the receiver's way into a buffer. It keeps the buffer's lock from one
// change to the next, because taking it for each costs a quarter of the ordered
// path's time. The receiver calls rest before anything that it may have to wait
// for, or that takes the lock by itself.
type intake struct {
	buffer *buffer
	// held says that the lock is ours, and for how many calls it has been.
	held  bool
	calls int
}

// maxCalls is how many calls in a row keep the lock: some microseconds.
const maxCalls = 64

// take takes the lock, unless it is ours.
func (i *intake) take() *buffer {
	if !i.held {
		i.buffer.mu.Lock()
		i.held, i.calls = true, 0
	}
	i.calls++
	return i.buffer
}

// done lets go of the lock if it has been kept for long.
func (i *intake) done() {
	if i.calls >= maxCalls {
		i.rest()
	}
}

// rest lets go of the lock.
func (i *intake) rest() {
	if i.held {
		i.held = false
		i.buffer.mu.Unlock()
	}
}

// add puts c into the ring, waiting while it is full. Changes at or below the
// last received position are dropped: a new connection repeats them. The error
// is ctx's, or errDraining or errEnded when drain or ended closes first.
func (i *intake) add(ctx context.Context, drain, ended <-chan struct{}, c *change.Change) error {
	b := i.take()
	defer i.done()
	for c.Position.Compare(b.ring.LastReceived()) > 0 && !b.ring.Admit(len(c.Raw)) {
		b.ready.raise()
		i.rest()
		select {
		case <-b.room:
		case <-drain:
			return errDraining
		case <-ended:
			return errEnded
		case <-ctx.Done():
			return ctx.Err()
		}
		i.take()
	}
	added, err := b.ring.Add(c)
	if err != nil {
		return newLife("%v", err)
	}
	if !added {
		return nil
	}
	b.received.add(c)
	if b.watching || b.ring.Filled() {
		b.ready.raise()
	}
	return nil
}

// mark notes the end of a transaction. The dispatcher is woken for the first
// complete one, to learn when it will be old enough, and when a segment may be
// full, not for each.
func (i *intake) mark(end change.LSN) {
	b := i.take()
	defer i.done()
	if b.ring.Mark(end) {
		b.acked.raise()
	}
	if !b.armed || b.ring.Filled() {
		b.ready.raise()
	}
}

// keepalive notes that nothing of the stream stands below end that has not been
// received.
func (i *intake) keepalive(end change.LSN) {
	b := i.take()
	defer i.done()
	if b.ring.Keepalive(end) {
		b.acked.raise()
	}
}
