package streamer

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/pgtest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// rival is a Temporal in which another streamer, whose rows nobody can reach,
// is always the first to start a broken segment again.
type rival struct{ *fakeTemporal }

func (r rival) Restart(ctx context.Context, ref segment.Ref, _ segment.Location) (segment.Record, error) {
	rec, err := r.fakeTemporal.Restart(ctx, ref, segment.Location{Instance: "another"})
	rec.Started = false
	return rec, err
}

func TestASegmentThatAnotherHasStartedAgainIsToldWhereTheRowsAre(t *testing.T) {
	t.Run("while it is awaited", func(t *testing.T) {
		w := newWorld(t, pgtest.Options{})
		w.tracker = rival{w.temporal}
		w.temporal.hold(func(segment.Ref) bool { return true })
		w.start()
		w.insert(3)
		w.until("the segment runs", func() bool { return len(w.temporal.running()) == 1 })
		w.temporal.terminate(w.temporal.running()[0])
		w.temporal.hold(func(segment.Ref) bool { return false })
		w.caughtUp()
		w.checkRows()
	})
	t.Run("when it is adopted", func(t *testing.T) {
		w := newWorld(t, pgtest.Options{})
		w.tracker = rival{w.temporal}
		w.temporal.terminate(w.leaveRunning(func() { w.insert(3) }))
		w.temporal.hold(func(segment.Ref) bool { return false })
		w.start()
		w.caughtUp()
		w.checkRows()
	})
}

// reset is a Temporal in which an operator resets a run that nobody has touched
// since another streamer began it.
type reset struct {
	*fakeTemporal
	done bool
}

func (r *reset) Await(ctx context.Context, rec segment.Record) (segment.Record, error) {
	if r.done {
		return r.fakeTemporal.Await(ctx, rec)
	}
	r.done = true
	r.terminate(rec.Ref)
	return rival{r.fakeTemporal}.Restart(ctx, rec.Ref, segment.Location{})
}

func TestARunThatWasResetIsToldWhereTheRowsAre(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	w.tracker = &reset{fakeTemporal: w.temporal}
	w.temporal.hold(func(segment.Ref) bool { return true })
	w.start()
	w.insert(3)
	w.until("the segment runs", func() bool { return len(w.temporal.running()) == 1 })
	w.temporal.hold(func(segment.Ref) bool { return false })
	w.caughtUp()
	w.checkRows()
}

func TestABoundaryThatChangesUnderAWaitIsAdoptedAnew(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	s := w.start()
	w.insert(3)
	w.caughtUp()
	w.temporal.hold(func(segment.Ref) bool { return true })
	w.insert(7)
	w.until("the segment runs", func() bool { return len(w.temporal.running()) == 1 })
	ref := w.temporal.running()[0]
	s.mu.Lock()
	l := s.life
	s.mu.Unlock()
	rec, err := w.temporal.Start(t.Context(), ref, segment.Location{})
	if err != nil {
		t.Fatal(err)
	}
	other := ref
	other.Last.Ordinal--
	w.temporal.hold(func(segment.Ref) bool { return false })
	if err := l.await(t.Context(), other, rec); err == nil {
		t.Error("a completed segment of other rows is taken for ours")
	}
}

// A streamer that has lost the slot tells a run of its successor that the rows
// are with it, and is gone.
func TestARunThatWasLedAstrayIsBroughtBack(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	w.temporal.hold(func(segment.Ref) bool { return true })
	w.start(func(c *Config) { c.remindEvery = 50 * time.Millisecond })
	w.insert(3)
	w.until("the segment runs", func() bool { return len(w.temporal.running()) == 1 })
	rec := segment.Record{Ref: w.temporal.running()[0]}
	if err := w.temporal.Redirect(t.Context(), rec, segment.Location{Instance: "gone"}); err != nil {
		t.Fatal(err)
	}
	w.temporal.hold(func(segment.Ref) bool { return false })
	w.caughtUp()
	w.checkRows()
}

func TestTheGuardWaitsUntilTheSlotIsSeenToBeOurs(t *testing.T) {
	g := newGuard(slog.New(slog.DiscardHandler))
	var now atomic.Int64
	g.now = func() time.Time { return time.Unix(now.Load(), 0) }
	g.confirm()
	now.Add(int64(ownedNow / time.Second))
	if ok, _ := g.owned(ownedNow); ok {
		t.Errorf("ours %s after it was seen to be", ownedNow)
	}
	if err := g.wait(t.Context(), ownedFor); err != nil {
		t.Errorf("within %s: %v", ownedFor, err)
	}
	done := make(chan error, 1)
	go func() { done <- g.wait(t.Context(), ownedNow) }()
	select {
	case err := <-done:
		t.Fatalf("did not wait: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	g.confirm()
	if err := <-done; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	now.Add(int64(ownedFor / time.Second))
	if err := g.wait(ctx, ownedFor); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
