package streamer

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer/ring"
)

// dispatch cuts the ring into segments and has each started or adopted,
// strictly in order: the next only after Temporal has confirmed the one before.
// So the recorded boundaries always form a chain without gaps. It returns nil
// when draining has begun and every complete transaction is dispatched.
func (l *life) dispatch(ctx context.Context) error {
	for {
		view, ok, err := l.nextProposal(ctx)
		if err != nil || !ok {
			return err
		}
		switch err := l.startOrAdopt(ctx, view); {
		case errors.Is(err, errDraining):
			return nil
		case err != nil:
			return err
		}
	}
}

// nextProposal waits until a segment should be closed, and no pause keeps it
// from that. ok is false when draining is done, or has begun within a pause.
func (l *life) nextProposal(ctx context.Context) (view ring.View, ok bool, err error) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if err := l.unpaused(ctx); err != nil {
			if errors.Is(err, errDraining) {
				err = nil
			}
			return ring.View{}, false, err
		}
		draining := l.draining()
		view, ok, due := l.buf.propose(change.TimeOf(time.Now()), draining)
		if ok || draining {
			return view, ok, nil
		}
		timer.Reset(due)
		select {
		case <-l.buf.ready:
		case <-l.drain:
		case <-timer.C:
		case <-ctx.Done():
			return ring.View{}, false, ctx.Err()
		}
	}
}

// againAfter is the pause before a segment is looked for again whose record has
// vanished: Temporal deletes in steps.
const againAfter = 500 * time.Millisecond

// startOrAdopt brings the segment that begins where view does under way: view
// itself, or whatever boundary an earlier process recorded there.
func (l *life) startOrAdopt(ctx context.Context, view ring.View) error {
	l.traces.begin(view)
	own := l.refOf(view)
	for {
		if done, err := l.adoptObject(ctx, own); done || err != nil {
			return err
		}
		if err := l.mayStart(ctx); err != nil {
			return err
		}
		// The rows are offered before anybody is told that they are here.
		l.shelf.put(own, view)
		rec, err := l.tracker.Start(ctx, own, l.at)
		action := Decide(own, rec)
		if err == nil && action == Wait {
			return l.launch(ctx, own, view, rec)
		}
		l.shelf.drop(own.First)
		switch {
		case err != nil:
			l.release()
			return err
		case action == Again:
			// It has been deleted, or has just grown too old: then it has left an
			// object.
			l.release()
			l.days.forget()
			if err := sleep(ctx, againAfter); err != nil {
				return err
			}
		case action == Refuse:
			l.release()
			return refuse(own, rec)
		default:
			return l.adopt(ctx, own, rec, action)
		}
	}
}

// refOf makes the reference of a proposed segment.
func (l *life) refOf(v ring.View) segment.Ref {
	h := segment.NewHasher()
	var tables tableSet
	for chunk := range v.Chunks() {
		for i := range chunk {
			h.Add(&chunk[i])
			tables.add(chunk[i].Relation)
		}
	}
	ref := segment.Ref{
		Pipeline: l.cfg.Pipeline,
		SystemID: l.systemID,
		Lake:     l.lake.URL(),
		First:    v.First,
		Last:     v.Last,
		Follows:  l.follows,
		Day:      v.Day,
		Rows:     h.Rows(),
		Bytes:    h.Bytes(),
		Digest:   h.Sum(),
	}
	ref.Tables, ref.TableCount = tables.names()
	return ref
}

// launch takes a started segment, whose rows are on the shelf, as dispatched
// and waits for it elsewhere.
func (l *life) launch(ctx context.Context, ref segment.Ref, view ring.View, rec segment.Record) error {
	var id ring.SegmentID
	var err error
	l.buf.locked(func(r *ring.Ring) { id, err = r.Cut(view) })
	if err != nil {
		return err
	}
	l.follows = ref.Last
	l.furthest.note(ref.Last)
	l.flights.add(id, ref)
	l.traces.dispatched(ref, rec.RunID)
	l.log.Debug("segment dispatched", "first", ref.First, "last", ref.Last, "rows", ref.Rows, "bytes", ref.Bytes, "run", rec.RunID, "adopted", !rec.Started)
	l.goAwait(ctx, id, ref, rec)
	return nil
}

// mayStart takes a place among the segments in flight, and waits until the slot
// was seen to be ours lately: a streamer that has lost its slot stops
// dispatching. So does a pause that has begun meanwhile. On success the place is
// to be given back with release.
func (l *life) mayStart(ctx context.Context) error {
	select {
	case l.places <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := l.guard.wait(ctx, ownedFor)
	if err == nil {
		err = l.unpaused(ctx)
	}
	if err != nil {
		l.release()
	}
	return err
}

func (l *life) release() { <-l.places }

// tableSet collects the tables of a segment; consecutive changes of the same
// relation version cost one comparison.
type tableSet struct {
	last *change.Relation
	seen map[*change.Relation]struct{}
}

func (t *tableSet) add(r *change.Relation) {
	if r == nil || r == t.last {
		return
	}
	t.last = r
	if t.seen == nil {
		t.seen = map[*change.Relation]struct{}{}
	}
	t.seen[r] = struct{}{}
}

// names gives the first segment.MaxTables names in order, and how many there
// are.
func (t *tableSet) names() ([]string, int) {
	all := make([]string, 0, len(t.seen))
	for r := range t.seen {
		all = append(all, r.QualifiedName())
	}
	slices.Sort(all)
	all = slices.Compact(all)
	n := len(all)
	return all[:min(n, segment.MaxTables):min(n, segment.MaxTables)], n
}
