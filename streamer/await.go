package streamer

import (
	"context"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer/ring"
)

// goAwait follows one dispatched segment to its end on a goroutine of the life.
func (l *life) goAwait(ctx context.Context, id ring.SegmentID, ref segment.Ref, rec segment.Record) {
	committed, known := l.shelf.committed(ref.First)
	l.group.Go(func() error {
		defer l.release()
		defer l.shelf.drop(ref.First)
		defer l.flights.remove(id)
		if err := l.await(ctx, ref, rec); err != nil {
			return err
		}
		l.traces.finished(ref.First)
		l.buf.finish(id)
		l.flights.finish(id)
		if known {
			l.observer.InLake(ref.Rows, max(0, time.Since(committed.UTC())))
		}
		return nil
	})
}

// await returns when the segment has completed. A run that was closed otherwise
// is started again: an operator may terminate, reset or cancel it, and the
// streamer goes on.
func (l *life) await(ctx context.Context, ref segment.Ref, rec segment.Record) error {
	for {
		var err error
		if rec, err = l.awaitReminding(ctx, rec); err == nil {
			err = sameBoundary(ref, rec)
		}
		if err != nil {
			return err
		}
		l.traces.awaited(ref.First, rec)
		switch rec.State {
		case segment.Completed:
			return nil
		case segment.Running:
			// A reset, or another streamer that was first to start it again.
			err = l.redirect(ctx, rec)
		case segment.Broken:
			l.log.Warn("a segment's workflow was closed before it completed; it is started again with the same boundary, and nothing needs to be done",
				"segment", ref.First, "workflow", ref.WorkflowID(), "run", rec.RunID, "reason", rec.Reason)
			l.observer.Restarted(endingClosed)
			rec, err = l.startAgain(ctx, ref, l.tracker.Restart)
		case segment.None:
			l.log.Warn("Temporal no longer knows a segment's workflow, which somebody has deleted; it is started anew with the same boundary. Do not delete workflows, terminate them: they are the record of the boundaries",
				"segment", ref.First, "workflow", ref.WorkflowID())
			l.observer.Restarted(endingForgotten)
			rec, err = l.startAgain(ctx, ref, l.tracker.Start)
		}
		if err != nil {
			return err
		}
		l.traces.runs(ref.First, rec)
	}
}

// awaitReminding is Tracker.Await that tells a long run now and then where the
// rows are: a streamer that had lost the slot may have told it otherwise after
// we did, and be gone.
func (l *life) awaitReminding(ctx context.Context, rec segment.Record) (segment.Record, error) {
	for {
		bounded, cancel := context.WithTimeout(ctx, l.cfg.remindEvery)
		now, err := l.tracker.Await(bounded, rec)
		over := bounded.Err() != nil
		cancel()
		if err == nil || !over || ctx.Err() != nil {
			return now, err
		}
		if err := l.redirect(ctx, rec); err != nil {
			return rec, err
		}
	}
}

// redirect tells an open run that the rows are here, once the slot is seen to be
// ours.
func (l *life) redirect(ctx context.Context, rec segment.Record) error {
	if err := l.guard.wait(ctx, ownedNow); err != nil {
		return err
	}
	return l.tracker.Redirect(ctx, rec, l.at)
}

type startFunc func(context.Context, segment.Ref, segment.Location) (segment.Record, error)

// startAgain starts a segment that has no open run. Another streamer may come
// first: then its run is told that the rows are here.
func (l *life) startAgain(ctx context.Context, ref segment.Ref, start startFunc) (segment.Record, error) {
	if err := l.guard.wait(ctx, ownedFor); err != nil {
		return segment.Record{}, err
	}
	rec, err := start(ctx, ref, l.at)
	if err == nil {
		err = sameBoundary(ref, rec)
	}
	switch {
	case err != nil:
	case rec.State == segment.None:
		rec.Ref = ref // what Await is to look for
	case rec.State == segment.Running && !rec.Started:
		err = l.redirect(ctx, rec)
	}
	return rec, err
}

// sameBoundary ends the life if rec is not of ref's very rows: somebody else
// has recorded another boundary here meanwhile. Our ring is cut differently, so
// everything is adopted from the start.
func sameBoundary(ref segment.Ref, rec segment.Record) error {
	if rec.State != segment.None && (rec.Ref.Last != ref.Last || rec.Ref.Digest != ref.Digest) {
		return newLife("segment %s is now recorded up to %s instead of %s", ref.First, rec.Ref.Last, ref.Last)
	}
	return nil
}
