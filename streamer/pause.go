package streamer

import (
	"context"
	"sync"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/lake"
)

// pauses knows whether a person has paused the pipeline, as the lake says. While
// it is paused nothing is dispatched or adopted. The ring fills and then nothing
// is read; status updates go on, segments in flight finish, and the ack follows
// them.
type pauses struct {
	mu  sync.Mutex
	now *lake.Pause // nil: not paused
	// changed is closed and replaced when now changes; nil before the first use.
	changed chan struct{}
}

// get gives the pause, nil if there is none, and a channel that is closed when
// that changes.
func (p *pauses) get() (*lake.Pause, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return p.now, p.changed
}

// set says whether there is another pause now than before.
func (p *pauses) set(now *lake.Pause) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now == nil && now == nil || p.now != nil && now != nil && *p.now == *now {
		return false
	}
	p.now = now
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
	return true
}

// learnPause reads whether the pipeline is paused before a life dispatches
// anything, waiting while the lake cannot be read.
func (s *Streamer) learnPause(ctx context.Context) error {
	var now *lake.Pause
	err := patiently(ctx, s.deps.Logger, "it cannot be read from the lake whether the pipeline is paused; streaming waits for it", func() (again bool, err error) {
		now, err = s.deps.Lake.ReadPause(ctx)
		return true, err
	})
	if err == nil {
		s.paused(now)
	}
	return err
}

// watchPause reads it again every few seconds. While the lake does not answer,
// what was read last holds.
func (s *Streamer) watchPause(ctx context.Context) error {
	said := false
	for {
		if err := sleep(ctx, s.cfg.pauseEvery); err != nil {
			return err
		}
		bounded, cancel := context.WithTimeout(ctx, 30*time.Second)
		now, err := s.deps.Lake.ReadPause(bounded)
		cancel()
		switch {
		case err == nil:
			s.paused(now)
			said = false
		case ctx.Err() != nil:
			return ctx.Err()
		case !said:
			before, _ := s.pauses.get()
			s.deps.Logger.Warn("it cannot be read from the lake whether the pipeline is paused; what was read last holds", "paused", before != nil, "error", err)
			said = true
		}
	}
}

// paused notes what the lake says, and logs what has changed.
func (s *Streamer) paused(now *lake.Pause) {
	if !s.pauses.set(now) {
		return
	}
	if now == nil {
		s.deps.Logger.Info("the pipeline was resumed: segments are dispatched again")
		return
	}
	s.deps.Logger.Warn("the pipeline is paused: nothing is dispatched until tidemark resume, and Postgres keeps its WAL meanwhile",
		"by", now.By, "since", now.Since, "reason", now.Reason)
}

// unpaused blocks while the pipeline is paused. The error is ctx's, or
// errDraining when a graceful stop begins first: what waits in the ring then
// stays with Postgres.
func (l *life) unpaused(ctx context.Context) error {
	for {
		pause, changed := l.pauses.get()
		if pause == nil {
			return nil
		}
		select {
		case <-changed:
		case <-l.drain:
			return errDraining
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
