package streamer

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// ownedFor is how long after the slot was last seen to be ours segments may be
// started. It is long, since the ring must still drain when Postgres cannot be
// asked, and finite, since a streamer that has lost its slot must stop.
const ownedFor = 10 * time.Minute

// guard remembers when the slot was last seen to be ours.
type guard struct {
	log *slog.Logger
	now func() time.Time

	mu   sync.Mutex
	seen time.Time
	// changed is closed and replaced at each confirmation.
	changed chan struct{}
}

func newGuard(log *slog.Logger) *guard {
	return &guard{log: log, now: time.Now, changed: make(chan struct{})}
}

// confirm notes that the slot was ours just now.
func (g *guard) confirm() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen = g.now()
	close(g.changed)
	g.changed = make(chan struct{})
}

// owned says whether segments may be started.
func (g *guard) owned() (bool, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.now().Sub(g.seen) < ownedFor, g.changed
}

// wait blocks while the slot has not been seen to be ours for too long.
func (g *guard) wait(ctx context.Context) error {
	for warned := false; ; warned = true {
		ok, changed := g.owned()
		if ok {
			return ctx.Err()
		}
		if !warned {
			g.log.Warn("no segment is started: the replication slot was not seen to be ours for ten minutes; it goes on once Postgres confirms it")
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (g *guard) lastSeen() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen
}
