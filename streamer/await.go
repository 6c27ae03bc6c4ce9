package streamer

import (
	"context"

	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer/ring"
)

// goAwait follows one dispatched segment to its end on a goroutine of the life.
func (l *life) goAwait(ctx context.Context, id ring.SegmentID, ref segment.Ref, rec segment.Record) {
	l.group.Go(func() error {
		defer l.release()
		defer l.shelf.drop(ref.First)
		defer l.flights.remove(id)
		if err := l.await(ctx, ref, rec); err != nil {
			return err
		}
		l.buf.finish(id)
		return nil
	})
}

// await returns when the segment has completed. A run that was closed otherwise
// is started again: an operator may terminate, reset or cancel it, and the
// streamer goes on.
func (l *life) await(ctx context.Context, ref segment.Ref, rec segment.Record) error {
	for {
		var err error
		if rec, err = l.tracker.Await(ctx, rec); err != nil {
			return err
		}
		switch rec.State {
		case segment.Completed:
			return nil
		case segment.Broken:
			l.log.Warn("a segment's workflow was closed before it completed; starting it again",
				"segment", ref.First, "workflow", ref.WorkflowID(), "run", rec.RunID, "reason", rec.Reason)
			rec, err = l.startAgain(ctx, ref, l.tracker.Restart)
		case segment.None:
			l.log.Warn("Temporal no longer knows a segment's workflow; starting it anew", "segment", ref.First, "workflow", ref.WorkflowID())
			rec, err = l.startAgain(ctx, ref, l.tracker.Start)
		}
		if err != nil {
			return err
		}
	}
}

type startFunc func(context.Context, segment.Ref, segment.Location) (segment.Record, error)

func (l *life) startAgain(ctx context.Context, ref segment.Ref, start startFunc) (segment.Record, error) {
	if err := l.guard.wait(ctx); err != nil {
		return segment.Record{}, err
	}
	rec, err := start(ctx, ref, l.at)
	if err == nil && rec.State != segment.None && (rec.Ref.Last != ref.Last || rec.Ref.Digest != ref.Digest) {
		// Somebody else has recorded another boundary here meanwhile. Our ring
		// is cut differently, so everything is adopted from the start.
		return rec, newLife("segment %s is now recorded up to %s instead of %s", ref.First, rec.Ref.Last, ref.Last)
	}
	return rec, err
}
