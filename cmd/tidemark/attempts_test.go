package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/operator"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer"
)

// asked is a Temporal that notes what it is asked about.
type asked struct {
	mu    sync.Mutex
	about []change.LSN
	fail  map[change.LSN]error
}

func (a *asked) find(_ context.Context, first change.Position) (operator.Segment, *operator.Pending, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.about = append(a.about, first.LSN)
	return operator.Segment{State: operator.Retrying, Attempt: int32(first.LSN)}, nil, a.fail[first.LSN]
}

// take is what was asked about since the last take, in order.
func (a *asked) take() []change.LSN {
	a.mu.Lock()
	defer a.mu.Unlock()
	about := slices.Sorted(slices.Values(a.about))
	a.about = nil
	return about
}

func segmentAt(n int) change.Position { return change.Position{Timeline: 1, LSN: change.LSN(n)} }

// inFlight are n segments that were dispatched at a time.
func inFlight(n int, since time.Time) []streamer.Flight {
	var list []streamer.Flight
	for i := range n {
		list = append(list, streamer.Flight{Ref: segment.Ref{First: segmentAt(i + 1)}, Since: since})
	}
	return list
}

func TestTemporalIsAskedAboutAttemptsOnlyWhileSomebodyLooks(t *testing.T) {
	begin := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	temporal := &asked{}
	flights := inFlight(3, begin)
	flights[2].Since = begin.Add(10 * time.Second)
	a := &attempts{find: temporal.find, flights: func() []streamer.Flight { return flights }}
	at := func(d time.Duration) []change.LSN { a.ask(t.Context(), begin.Add(d)); return temporal.take() }

	if got := at(10 * time.Second); len(got) > 0 {
		t.Errorf("nobody looks, and it was asked about %v", got)
	}
	a.look(begin.Add(10 * time.Second))
	if got := at(10 * time.Second); !slices.Equal(got, []change.LSN{1, 2}) {
		t.Errorf("it was asked about %v, want the two that are under way for long", got)
	}
	if known, ok, err := a.of(segmentAt(2)); !ok || known.segment.Attempt != 2 || err != nil {
		t.Errorf("of the second is known: %+v, %v, %v", known, ok, err)
	}
	if got := at(12 * time.Second); !slices.Equal(got, []change.LSN{1, 2, 3}) {
		t.Errorf("two seconds later it was asked about %v", got)
	}
	flights = flights[1:]
	at(13 * time.Second)
	if _, ok, _ := a.of(segmentAt(1)); ok {
		t.Error("one that is not in flight any more is still known")
	}
	if got := at(21 * time.Second); len(got) > 0 {
		t.Errorf("nobody has looked for a while, and it was asked about %v", got)
	}
	if _, ok, _ := a.of(segmentAt(2)); ok {
		t.Error("what was known when somebody last looked is still shown")
	}
}

func TestManySegmentsAreAskedAboutInTurnAndTheFirstAlways(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	temporal := &asked{}
	a := &attempts{find: temporal.find, flights: func() []streamer.Flight { return inFlight(64, now.Add(-time.Minute)) }}
	a.look(now)
	all := map[change.LSN]bool{}
	for round := range 5 {
		a.ask(t.Context(), now)
		got := temporal.take()
		if len(got) != askAtMost || got[0] != 1 {
			t.Fatalf("round %d has asked about %v", round, got)
		}
		for _, lsn := range got {
			all[lsn] = true
		}
	}
	if len(all) != 64 {
		t.Errorf("five rounds have asked about %d of 64: %v", len(all), slices.Sorted(maps.Keys(all)))
	}
}

func TestARoundEndsWithTheFirstFailureAndKeepsWhatWasKnown(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	temporal := &asked{fail: map[change.LSN]error{}}
	a := &attempts{find: temporal.find, flights: func() []streamer.Flight { return inFlight(10, now.Add(-time.Minute)) }}
	a.look(now)
	a.ask(t.Context(), now)
	temporal.take()
	temporal.fail[1] = errors.New("no route")
	a.ask(t.Context(), now)
	if got := temporal.take(); !slices.Equal(got, []change.LSN{1}) {
		t.Errorf("Temporal cannot be reached, and was asked about %v", got)
	}
	if known, ok, err := a.of(segmentAt(1)); !ok || known.segment.Attempt != 1 || err == nil {
		t.Errorf("of the first is known: %+v, %v, %v", known, ok, err)
	}
	// A workflow that somebody has deleted keeps nobody from asking about others.
	temporal.fail[1] = fmt.Errorf("workflow 1: %w", operator.ErrUnknown)
	a.ask(t.Context(), now)
	if got := temporal.take(); len(got) != 10 {
		t.Errorf("it was asked about %v", got)
	}
	if _, ok, err := a.of(segmentAt(1)); ok || err != nil {
		t.Errorf("a workflow that is not there is known: %v, %v", ok, err)
	}
}
