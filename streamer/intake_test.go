package streamer

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/streamer/ring"
)

func insertAt(lsn change.LSN) *change.Change {
	return &change.Change{Position: change.Position{Timeline: 1, LSN: lsn}, Operation: change.Insert, Raw: []byte("I")}
}

// others says whether anybody else gets at the ring now.
func others(b *buffer) bool {
	if !b.mu.TryLock() {
		return false
	}
	b.mu.Unlock()
	return true
}

func TestTheIntakeKeepsTheRingOnlyWhileMoreIsAtHand(t *testing.T) {
	b := newBuffer(ring.Config{}, ring.Start{})
	in := intake{buffer: b}
	defer in.rest()
	lets := 0
	for i := range 3 * maxCalls {
		lsn := change.LSN(i+1) * 0x100
		var err error
		switch i % 3 {
		case 0:
			err = in.add(t.Context(), nil, nil, insertAt(lsn))
		case 1:
			in.mark(lsn)
		case 2:
			in.keepalive(lsn)
		}
		if err != nil {
			t.Fatal(err)
		}
		if others(b) {
			lets++
		}
	}
	if lets != 3 {
		t.Errorf("in %d calls in a row others had %d chances, want one after each %d", 3*maxCalls, lets, maxCalls)
	}
	in.keepalive(0x1000000)
	if others(b) {
		t.Error("the ring is not kept")
	}
	in.rest()
	if !others(b) {
		t.Error("the ring is kept while the receiver rests")
	}
	in.rest() // again does nothing
}

func TestTheIntakeLetsGoWhileItWaitsForRoom(t *testing.T) {
	for name, end := range map[string]struct {
		by   func(b *buffer, drain, ended chan struct{}, cancel func())
		want error
	}{
		"room": {func(b *buffer, _, _ chan struct{}, _ func()) {
			b.locked(func(r *ring.Ring) { r.Lift(true) })
			b.room.raise()
		}, nil},
		"a stop":     {func(_ *buffer, drain, _ chan struct{}, _ func()) { close(drain) }, errDraining},
		"the end":    {func(_ *buffer, _, ended chan struct{}, _ func()) { close(ended) }, errEnded},
		"the caller": {func(_ *buffer, _, _ chan struct{}, cancel func()) { cancel() }, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuffer(ring.Config{MaxChanges: 1}, ring.Start{})
			in := intake{buffer: b}
			defer in.rest()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			drain, ended := make(chan struct{}), make(chan struct{})
			if err := in.add(ctx, drain, ended, insertAt(1)); err != nil {
				t.Fatal(err)
			}
			done := make(chan error)
			go func() {
				done <- in.add(ctx, drain, ended, &change.Change{Position: change.Position{Timeline: 1, LSN: 1, Ordinal: 1}, Raw: []byte("I")})
			}()
			for since := time.Now(); !others(b); time.Sleep(time.Millisecond) {
				if time.Since(since) > 30*time.Second {
					t.Fatal("the ring is kept from everybody who could make room")
				}
			}
			end.by(b, drain, ended, cancel)
			if err := <-done; !errors.Is(err, end.want) {
				t.Errorf("add returned %v, want %v", err, end.want)
			}
		})
	}
}
