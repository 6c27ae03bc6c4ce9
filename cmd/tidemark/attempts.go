package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/operator"
	"github.com/tidemark-cdc/tidemark/streamer"
)

const (
	// askEvery is how often Temporal is asked about segments in flight.
	askEvery = 2 * time.Second
	// askAfter is for how long a segment is under way before it is asked about:
	// most are in the lake by then.
	askAfter = 2 * time.Second
	// askAtMost is how many are asked about in one round: the one that holds the
	// ack, and some of the others in turn; askAtOnce is how many at once.
	askAtMost, askAtOnce = 16, 4
	// askBound bounds a round.
	askBound = 5 * time.Second
	// lookedFor is for how long somebody who has looked counts as looking.
	lookedFor = 10 * time.Second
)

// attempts is what Temporal says of the attempts at the segments in flight, which
// the streamer itself does not know. It is asked beside the ordered path, and
// only while somebody looks. Safe for concurrent use.
type attempts struct {
	find    func(context.Context, change.Position) (operator.Segment, *operator.Pending, error)
	flights func() []streamer.Flight

	mu     sync.Mutex
	looked time.Time
	known  map[change.Position]attempt
	failed error // why the last round has not got all its answers; nil if it has
	turn   int
}

// attempt is what was said of one segment. pending is nil while nothing is.
type attempt struct {
	segment operator.Segment
	pending *operator.Pending
}

// run asks until ctx ends.
func (a *attempts) run(ctx context.Context) error {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		a.ask(ctx, time.Now())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// look says that somebody looks.
func (a *attempts) look(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.looked = now
}

// of gives what is known of the segment that begins at first, and why no more is.
func (a *attempts) of(first change.Position) (known attempt, ok bool, failed error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok = a.known[first]
	return known, ok, a.failed
}

// ask makes one round.
func (a *attempts) ask(ctx context.Context, now time.Time) {
	wanted := a.choose(now)
	if len(wanted) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askBound)
	defer cancel()
	// The first alone: if that cannot be had, the others cannot either.
	err := a.askFor(ctx, wanted[0])
	if err == nil {
		group, gctx := errgroup.WithContext(ctx)
		group.SetLimit(askAtOnce)
		for _, first := range wanted[1:] {
			group.Go(func() error { return a.askFor(gctx, first) })
		}
		err = group.Wait()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed = err
}

// choose says which segments to ask about now, and forgets those that are not in
// flight any more, and all if nobody looks.
func (a *attempts) choose(now time.Time) []change.Position {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.looked) > lookedFor {
		a.known = nil
		return nil
	}
	var old []change.Position
	for _, f := range a.flights() {
		if now.Sub(f.Since) >= askAfter {
			old = append(old, f.Ref.First)
		}
	}
	kept := map[change.Position]attempt{}
	for _, first := range old {
		if known, ok := a.known[first]; ok {
			kept[first] = known
		}
	}
	a.known = kept
	if len(old) <= askAtMost {
		return old
	}
	wanted := old[:1:1]
	for others := old[1:]; len(wanted) < askAtMost; a.turn++ {
		wanted = append(wanted, others[a.turn%len(others)])
	}
	return wanted
}

func (a *attempts) askFor(ctx context.Context, first change.Position) error {
	s, pending, err := a.find(ctx, first)
	a.mu.Lock()
	defer a.mu.Unlock()
	if errors.Is(err, operator.ErrUnknown) {
		delete(a.known, first) // the streamer starts it anew
		return nil
	}
	if err == nil {
		a.known[first] = attempt{s, pending}
	}
	return err
}
