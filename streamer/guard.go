package streamer

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// ownedFor is how long after the slot was last seen to be ours segments may be
// started. It is long, since the ring must still drain when Postgres cannot be
// asked, and finite, since a streamer that has lost its slot must stop.
const ownedFor = 10 * time.Minute

// ownedNow is how long ago that may be for a run that another streamer may have
// begun to be told that the rows are here. One that has lost its slot would
// take the runs of its successor to itself, and then be gone.
const ownedNow = 3 * watchEvery

// guard remembers when the slot was last seen to be ours.
type guard struct {
	log *slog.Logger
	now func() time.Time

	mu   sync.Mutex
	seen time.Time
	// slot is how the slot was seen last; nil before.
	slot *replication.SlotInfo
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

// owned says whether the slot was seen to be ours within the last while, and
// gives a channel that is closed when it is seen again.
func (g *guard) owned(within time.Duration) (bool, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.now().Sub(g.seen) < within, g.changed
}

// wait blocks while the slot has not been seen to be ours for too long: within
// is ownedFor or ownedNow.
func (g *guard) wait(ctx context.Context, within time.Duration) error {
	for warned := false; ; warned = true {
		ok, changed := g.owned(within)
		if ok {
			return ctx.Err()
		}
		if !warned {
			g.log.Warn("no segment is started or adopted: the replication slot was not seen to be ours lately; it goes on once Postgres confirms it", "within", within)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// note keeps how the slot was seen, whoever has it.
func (g *guard) note(slot replication.SlotInfo) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.slot = &slot
}

// lastSeen is when the slot was last seen to be ours, and how it was seen last;
// nil before it was.
func (g *guard) lastSeen() (time.Time, *replication.SlotInfo) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen, g.slot
}
