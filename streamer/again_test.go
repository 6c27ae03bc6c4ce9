package streamer

import (
	"context"
	"testing"

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
