package lake

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// Quarantined gives the reference of every object in quarantine whose first and
// last position meets takes, in stream order. Rows that a replay has stored
// already are among them as long as the object is. Bytes and Tables are not
// known and stay empty. The error is of the store, or joins those of objects
// that cannot be read, beside the others.
func (l *Lake) Quarantined(ctx context.Context, meets func(first, last change.Position) bool) ([]segment.Ref, error) {
	var refs []segment.Ref
	var errs []error
	for info, err := range l.store.List(ctx, quarantineFolder, "") {
		if err != nil {
			return nil, fmt.Errorf("list the quarantine of %s: %w", l.url, err)
		}
		parts, err := ParseKey(info.Key)
		if err != nil || !meets(parts.First, parts.Last) {
			continue
		}
		m, err := l.readMetadata(ctx, info)
		switch {
		case errors.Is(err, ErrNotFound):
			// Another replay has just moved it.
		case errors.Is(err, ErrUnreadable):
			errs = append(errs, fmt.Errorf("%s/%s: %w", l.url, info.Key, err))
		case err != nil:
			return nil, fmt.Errorf("read the quarantine of %s: %w", l.url, err)
		default:
			refs = append(refs, segment.Ref{
				Pipeline: m.Pipeline, SystemID: m.SystemID, Lake: l.url, First: m.First, Last: m.Last,
				Follows: m.Follows, Day: parts.Day, Rows: m.Rows, Digest: m.Digest,
			})
		}
	}
	return refs, errors.Join(errs...)
}

// ReadQuarantine reads a segment's raw messages, as PutQuarantine stored them.
// ErrNotFound, or ErrConflict if they are of other rows.
func (l *Lake) ReadQuarantine(ctx context.Context, ref segment.Ref) ([]byte, error) {
	_, found, err := l.FindQuarantine(ctx, ref)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("read the quarantine of segment %s: %s/%s: %w", ref.First, l.url, QuarantineKey(ref), ErrNotFound)
	}
	body, _, err := l.store.Get(ctx, QuarantineKey(ref))
	if err != nil {
		return nil, fmt.Errorf("read the quarantine of segment %s: %w", ref.First, err)
	}
	return body, nil
}

// RemoveQuarantine removes a segment's raw messages, once its rows are in the
// lake: it looks, and refuses otherwise. That they are gone is success.
func (l *Lake) RemoveQuarantine(ctx context.Context, ref segment.Ref) error {
	_, found, err := l.FindSegment(ctx, ref)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("remove the quarantine of segment %s: its rows are not in the lake", ref.First)
	}
	if err := l.store.Remove(ctx, QuarantineKey(ref)); err != nil {
		return fmt.Errorf("remove the quarantine of segment %s, whose rows are in the lake: %w", ref.First, err)
	}
	return nil
}
