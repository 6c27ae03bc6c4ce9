package streamer

import (
	"context"
	"errors"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer/ring"
)

// The ways out that the stops here point to.
const (
	doDiffers = "the rows that Postgres replays are not those that were recorded: put publication, row filters and the messages and origin settings back as they were, or, if the database lost these rows in a failover, see \"divergence\" in the operations guide"
	doForeign = "another pipeline or lake has used this workflow ID: check pipeline name, lake URL and Temporal namespace against those of the first run"
	doLost    = "rows went to the lake that this database does not have (a failover to a standby that was behind, or a restored copy): tidemark resolve --dry-run says what they are, and tidemark resolve records that and lets the pipeline go on; see \"divergence\" in the operations guide; nothing is written until it is settled"
	doAhead   = "if the slot was advanced or made again by hand, rows between the two are missing from the lake: tidemark resolve records that gap and lets the pipeline go on; see \"gaps\" in the operations guide"
	doDamaged = "something else than Tidemark has written or damaged it: run tidemark verify; once the object is moved out of the lake, its rows are uploaded again"
	doOverlap = "two writers have used this lake prefix, or objects were moved in it: run tidemark verify, and give each slot a prefix of its own"
)

func refuse(own segment.Ref, rec segment.Record) error {
	return stop(doForeign,
		"workflow %s records segment %s to %s of lake %s, system %s, following %s, which does not fit this pipeline (lake %s, system %s, following %s)",
		own.WorkflowID(), rec.Ref.First, rec.Ref.Last, rec.Ref.Lake, rec.Ref.SystemID, rec.Ref.Follows, own.Lake, own.SystemID, own.Follows)
}

// adopt takes over the boundary that rec records. The caller holds a place in
// flight, which passes on to the segment or is given back.
func (l *life) adopt(ctx context.Context, own segment.Ref, rec segment.Record, action Action) error {
	held := false
	defer func() {
		if !held {
			l.release()
		}
	}()
	if err := l.checkBranch(ctx, rec.Ref, action == AdoptFinished); err != nil {
		return err
	}
	l.count.adopted.Add(1)
	l.traces.adopting(adoptions[action], rec)
	l.log.Info("adopting a recorded segment", "first", rec.Ref.First, "last", rec.Ref.Last, "proposed_last", own.Last, "state", rec.State, "reason", rec.Reason)
	if action == AdoptFinished {
		return l.absorb(ctx, rec.Ref)
	}
	view, reached, _, err := l.buf.waitFor(ctx, l.drain, rec.Ref.Last, false)
	if err != nil {
		return err
	}
	if !reached {
		return differs(rec.Ref, "has no change at the recorded last position")
	}
	ref := l.refOf(view)
	if ref.Digest != rec.Ref.Digest {
		return differs(rec.Ref, "has the digest "+ref.Digest.String()+" over the same positions")
	}
	// From here on the recorded reference is the segment's; ours differs in
	// nothing that counts.
	ref = rec.Ref
	l.shelf.put(ref, view)
	if action == AdoptBroken {
		rec, err = l.startAgain(ctx, ref, l.tracker.Restart)
	} else {
		err = l.redirect(ctx, rec)
	}
	if err != nil {
		return err
	}
	held = true
	return l.launch(ctx, ref, view, rec)
}

// absorb takes over a finished segment: its rows are digested as they come and
// dropped, whatever their size, and the walk passes it only once the digest has
// been seen to agree. One that reaches into an abandoned branch of history ends
// where that begins: nobody can bring its last rows again, so its digest cannot
// be compared.
func (l *life) absorb(ctx context.Context, ref segment.Ref) error {
	var id ring.SegmentID
	var err error
	l.buf.locked(func(r *ring.Ring) { id, err = r.Open() })
	if err != nil {
		return err
	}
	reaches := l.gone.Cover(ref.Last)
	if !reaches {
		l.furthest.note(ref.Last)
	}
	h := segment.NewHasher()
	var last change.Position
	for {
		view, reached, beyond, err := l.buf.waitFor(ctx, l.drain, ref.Last, true)
		if err != nil {
			return err
		}
		if beyond && !reaches {
			return differs(ref, "has no change at the recorded last position")
		}
		for chunk := range view.Chunks() {
			for i := range chunk {
				h.Add(&chunk[i])
			}
		}
		if reached && h.Sum() != ref.Digest {
			return differs(ref, "has the digest "+h.Sum().String()+" over the same positions")
		}
		if view.Rows > 0 {
			last = view.Last
			l.buf.locked(func(r *ring.Ring) { err = r.Extend(id, view) })
			if err != nil {
				return err
			}
			l.buf.room.raise()
		}
		if reached || beyond {
			if beyond {
				l.bridge(last, ref.Last)
			}
			l.follows = ref.Last
			l.traces.dispatched(ref, "")
			l.traces.finished(ref.First)
			l.buf.finish(id)
			return nil
		}
	}
}

func differs(ref segment.Ref, how string) error {
	return stop(doDiffers, "segment %s to %s is recorded with %d rows and digest %s, but the stream that Postgres sends now %s",
		ref.First, ref.Last, ref.Rows, ref.Digest, how)
}

// checkBranch stops if the recorded boundary does not lie on the history that
// this server has: rows went to the lake that the database has lost. If that is
// settled, a finished segment keeps them; one that is not finished resolve has
// given up.
func (l *life) checkBranch(ctx context.Context, ref segment.Ref, finished bool) error {
	if finished && l.gone.Cover(ref.Last) {
		return nil
	}
	if tl := l.history().TimelineOf(ref.Last.LSN); tl != ref.Last.Timeline {
		return stop(doLost, "segment %s to %s was recorded on timeline %d, but on this server LSN %s belongs to timeline %d",
			ref.First, ref.Last, ref.Last.Timeline, ref.Last.LSN, tl)
	}
	if ref.Last.LSN < l.horizon() {
		return nil
	}
	flushed, err := l.flushed(ctx)
	if err != nil {
		return err
	}
	if ref.Last.LSN >= flushed {
		return stop(doLost, "segment %s to %s is recorded, but this server's WAL ends at %s",
			ref.First, ref.Last, flushed)
	}
	return nil
}

// adoptObject looks for the segment in the lake itself, for which Temporal's
// memory may be too short. That is only needed for changes that were in the WAL
// when this connection was made: later ones no earlier streamer can have seen.
func (l *life) adoptObject(ctx context.Context, own segment.Ref) (bool, error) {
	if own.First.LSN >= l.horizon() || !adopts {
		return false, nil
	}
	for wait := time.Second; ; wait = min(2*wait, time.Minute) {
		done, err := l.tryAdoptObject(ctx, own)
		var unread *lakeError
		if !errors.As(err, &unread) || ctx.Err() != nil {
			return done, err
		}
		l.log.Warn("the lake cannot be read; a segment that is being caught up waits for it", "segment", own.First, "error", err, "again_in", wait)
		if err := sleep(ctx, wait); err != nil {
			return false, err
		}
	}
}

func (l *life) tryAdoptObject(ctx context.Context, own segment.Ref) (bool, error) {
	day, err := l.days.get(ctx, l.lake, own.Day)
	if err != nil {
		return false, &lakeError{err}
	}
	if e, ok := day.Across(own.First); ok {
		return false, stop(doOverlap, "the lake's object %s lies across position %s, where the next segment begins", e.Key, own.First)
	}
	e, ok := day.At(own.First)
	if !ok {
		return false, nil
	}
	m, err := l.lake.ReadMetadata(ctx, e.Key)
	if errors.Is(err, lake.ErrUnreadable) {
		return false, stop(doDamaged, "the lake's object %s begins where the next segment does: %v", e.Key, err)
	}
	if errors.Is(err, lake.ErrNotFound) {
		// It was in quarantine, and a replay has stored its rows and removed it.
		l.days.forget()
	}
	if err != nil {
		return false, &lakeError{err}
	}
	ref := own
	ref.Last, ref.Follows, ref.Rows, ref.Digest = m.Last, m.Follows, m.Rows, m.Digest
	if m.Pipeline != own.Pipeline || m.SystemID != own.SystemID || m.First != own.First || m.Follows != own.Follows {
		return false, stop(doOverlap, "the lake's object %s is of pipeline %s, system %s, and follows %s; here the segment would follow %s",
			e.Key, m.Pipeline, m.SystemID, m.Follows, own.Follows)
	}
	if err := l.checkBranch(ctx, ref, true); err != nil {
		return false, err
	}
	l.count.adopted.Add(1)
	l.traces.adopting(AdoptedObject, segment.Record{})
	l.log.Info("adopting a segment from the lake", "first", ref.First, "last", ref.Last, "key", e.Key)
	return true, l.absorb(ctx, ref)
}
