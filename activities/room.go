package activities

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// room bounds the raw bytes of the segments that attempts have in hand. A
// segment is as large as one row may be, and is held several times over while
// it is encoded; without a bound a few rows that are much larger than
// segment.max_bytes would each take their multiple at once.
type room struct {
	bytes int64
	free  *semaphore.Weighted
}

// shared is the room of all attempts, nil without a bound.
func (a *Activities) shared() *room {
	a.rooms.Do(func() {
		if a.MaxBytes > 0 {
			a.room = &room{bytes: a.MaxBytes, free: semaphore.NewWeighted(a.MaxBytes)}
		}
	})
	return a.room
}

// take waits until there is room for a segment, and gives what is to be handed
// back. One that is larger than all the room takes all of it: it is worked on
// alone.
func (r *room) take(ctx context.Context, bytes int64, waits func()) (taken int64, err error) {
	taken = min(bytes, r.bytes)
	if r.free.TryAcquire(taken) {
		return taken, nil
	}
	waits()
	if err := r.free.Acquire(ctx, taken); err != nil {
		return 0, err
	}
	return taken, nil
}

// roomFor takes the room for the attempt's segment, until the attempt ends or
// needs less.
func (t *attempt) roomFor(ctx context.Context) error { return t.roomOf(ctx, t.in.Ref.Bytes) }

func (t *attempt) roomOf(ctx context.Context, bytes int64) error {
	if t.room == nil || t.taken > 0 {
		return nil
	}
	taken, err := t.room.take(ctx, bytes, func() { t.enter(StepWait, 0, 0) })
	t.taken = taken
	return err
}

// roomDownTo hands the room back that the attempt does not need any more, for it
// has only so many bytes left in hand.
func (t *attempt) roomDownTo(bytes int64) {
	if more := t.taken - bytes; more > 0 {
		t.room.free.Release(more)
		t.taken = bytes
	}
}
