package streamer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// Streamer runs one pipeline's ordered path. Make it with New, run it once.
type Streamer struct {
	cfg      Config
	deps     Deps
	admin    *replication.Admin
	shelf    *shelf
	count    counters
	furthest furthest
	drift    driftGuard
	wal      walWatch
	pauses   pauses

	mu   sync.Mutex
	life *life // the present one; nil before the first and between two
	note string
	// before counts what earlier lives have received.
	before tally
}

// New checks cfg and makes a Streamer. Nothing is contacted.
func New(cfg Config, deps Deps) (*Streamer, error) {
	switch {
	case cfg.Pipeline == "":
		return nil, errors.New("streamer: Config.Pipeline is empty")
	case deps.Tracker == nil || deps.Lake == nil || deps.Logger == nil:
		return nil, errors.New("streamer: Deps is incomplete")
	}
	if deps.Observer == nil {
		deps.Observer = unobserved{}
	}
	admin, err := replication.NewAdmin(cfg.Replication, deps.Logger)
	if err != nil {
		return nil, fmt.Errorf("streamer: %w", err)
	}
	s := &Streamer{cfg: cfg.withDefaults(), deps: deps, admin: admin, shelf: newShelf(cfg.Pipeline), note: "starting"}
	s.wal.guard.limits = s.cfg.WAL
	return s, nil
}

// Source hands out the rows of segments in flight: to a worker in this process
// directly, to others through the data plane's server. It may be used before
// and during Run.
func (s *Streamer) Source() segment.Source { return s.shelf }

// Run streams until ctx ends, and then stops gracefully: it reads no further,
// dispatches every complete transaction that it has read, waits for the
// segments in flight (at most Config.ShutdownTimeout), records and reports the
// ack, and closes the connection. at says where workers find Source; its
// Instance is new for every process.
//
// While the server, the lake or Temporal cannot be reached Run waits and tries
// again. The errors it returns are final: a *StopError, or something that was
// refused. It returns nil after a graceful stop, also one that ran out of time:
// what was in flight then is adopted by the next process.
func (s *Streamer) Run(ctx context.Context, at segment.Location) error {
	if at.Instance == "" {
		return errors.New("streamer: Location.Instance is empty")
	}
	// The slot is watched over all lives, and through a graceful stop.
	watching, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	watched := make(chan struct{})
	go func() { defer close(watched); s.watch(watching) }()
	defer func() { unwatch(); <-watched }()
	for {
		err := s.live(ctx, at)
		s.setLife(nil, noteStopped)
		switch {
		case errors.Is(err, errNewLife) && ctx.Err() == nil:
			s.deps.Observer.Reconnected(causeNewLife)
			s.deps.Logger.Warn("starting over from the lake's record", "reason", err)
			if sleep(ctx, firstBackoff) != nil {
				return nil
			}
		case ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, errNewLife)):
			return nil
		case err != nil:
			return fmt.Errorf("pipeline %s: %w", s.cfg.Pipeline, err)
		default:
			return nil
		}
	}
}

// counters count since the process began, over all lives.
type counters struct {
	adopted, reconnects atomic.Int64
}

func (s *Streamer) setLife(l *life, note string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life != nil && s.life != l {
		_, received := s.life.buf.stats()
		s.before.addAll(received)
	}
	s.life, s.note = l, note
}
