package activities

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/rowfile"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// Replay decodes a quarantined segment's raw messages, stores its rows where
// they belong, and removes the messages then. It may be broken off anywhere and
// run again: there is always an object with the segment's boundary, and while
// there are two of them they are one link of the lake's chain.
func (a *Activities) Replay(ctx context.Context, in ReplayInput) (UploadResult, error) {
	t := a.begin(ctx, "replay", UploadInput{Version: in.Version, Ref: in.Ref})
	defer t.end()
	out, err := t.replay(ctx)
	t.ended(ctx, out, err)
	return out, toTemporal(ctx, t.action, in.Ref, err)
}

func (t *attempt) replay(ctx context.Context) (UploadResult, error) {
	if err := t.admit(); err != nil {
		return UploadResult{}, err
	}
	t.enter(StepLook, 0, 0)
	object, found, err := t.lake.FindSegment(ctx, t.in.Ref)
	if err != nil {
		return UploadResult{}, storeError("look for the object", err)
	}
	if !found {
		if object, err = t.decodeAgain(ctx); err != nil {
			return UploadResult{}, err
		}
	}
	if err := t.lake.RemoveQuarantine(ctx, t.in.Ref); err != nil {
		return UploadResult{}, storeError("remove the raw messages, whose rows are in the lake", err)
	}
	if found {
		object.Existed = true
		return resultOf(object, false), nil
	}
	return t.stored(object, false), nil
}

// decodeAgain makes the segment's object of its raw messages.
func (t *attempt) decodeAgain(ctx context.Context) (lake.Object, error) {
	// An object in quarantine does not say how large its messages are: alone.
	if err := t.roomOf(ctx, math.MaxInt64); err != nil {
		return lake.Object{}, err // the attempt was stopped
	}
	t.enter(StepFetch, 0, 0)
	body, err := t.lake.ReadQuarantine(ctx, t.in.Ref)
	if errors.Is(err, lake.ErrNotFound) {
		return lake.Object{}, fail(NotInQuarantine, err, "there is nothing to replay; tidemark verify shows what the lake has of it")
	}
	if err != nil {
		return lake.Object{}, storeError("read the raw messages", err)
	}
	changes, err := rowfile.ReadRaw(body)
	if err == nil {
		err = t.sameAsRecorded(changes)
	}
	if err != nil {
		return lake.Object{}, fail(QuarantineDamaged, fmt.Errorf("read the raw messages: %w", err),
			"the object in quarantine was damaged or written by something else, and stays as it is")
	}
	t.enter(StepEncode, t.in.Ref.Rows, int64(len(body)))
	rows, err := t.encode(ctx, t.in.Ref, [][]change.Change{changes})
	var p *problem
	if errors.As(err, &p) && p.class.Undecodable() {
		p.advice = "the raw messages stay in quarantine; replay again once the workers are of a release that understands them"
	}
	if err != nil {
		return lake.Object{}, err
	}
	t.enter(StepStore, t.in.Ref.Rows, int64(len(rows)))
	object, err := t.lake.PutSegment(ctx, t.in.Ref, rows)
	if err != nil {
		return lake.Object{}, storeError("store the object", err)
	}
	return object, nil
}

// sameAsRecorded shows that these are the changes of the segment.
func (t *attempt) sameAsRecorded(changes []change.Change) error {
	h := segment.NewHasher()
	for i := range changes {
		h.Add(&changes[i])
	}
	if h.Sum() != t.in.Ref.Digest || h.Rows() != t.in.Ref.Rows {
		return fmt.Errorf("its %d changes have the digest %s, and it says that it has %d with %s", h.Rows(), h.Sum(), t.in.Ref.Rows, t.in.Ref.Digest)
	}
	return nil
}
