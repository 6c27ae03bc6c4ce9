package lake

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// ErrConflict: the object of this segment is in the lake and holds other rows.
// It is never overwritten.
var ErrConflict = errors.New("the lake holds other rows in this place")

// Object is one Parquet object of the lake.
type Object struct {
	Key  string `json:"key"`
	Rows int64  `json:"rows"`
	// Bytes is the object's size.
	Bytes int64 `json:"bytes"`
	// Existed says that an earlier call had stored it.
	Existed bool `json:"existed,omitempty"`
}

// PutSegment stores a segment's object. body is a whole Parquet file with
// MetadataOf(ref) in its footer; it is not changed and not kept.
//
// It can be called any number of times, by anyone, also at once and also after
// a call whose reply was lost: an object with the same digest is success, with
// Existed. ErrConflict if the object holds other rows.
func (l *Lake) PutSegment(ctx context.Context, ref segment.Ref, body []byte) (Object, error) {
	return l.put(ctx, ref, Key(ref), body)
}

// PutQuarantine is PutSegment for a segment's raw messages, below _quarantine/.
// The object is a link of the chain like any other.
func (l *Lake) PutQuarantine(ctx context.Context, ref segment.Ref, body []byte) (Object, error) {
	return l.put(ctx, ref, QuarantineKey(ref), body)
}

// FindSegment looks for a segment's object, and says whether it is there. The
// error is ErrConflict if it holds other rows.
func (l *Lake) FindSegment(ctx context.Context, ref segment.Ref) (Object, bool, error) {
	return l.find(ctx, ref, Key(ref))
}

// FindQuarantine is FindSegment for the object of PutQuarantine.
func (l *Lake) FindQuarantine(ctx context.Context, ref segment.Ref) (Object, bool, error) {
	return l.find(ctx, ref, QuarantineKey(ref))
}

func (l *Lake) put(ctx context.Context, ref segment.Ref, key string, body []byte) (Object, error) {
	if err := l.checkRef(ref); err != nil {
		return Object{}, fmt.Errorf("put segment: %w", err)
	}
	// A file that says something else of itself would be found only by verify,
	// and could not be taken back.
	m, err := readFooter(int64(len(body)), func(offset, length int64) ([]byte, error) {
		return body[offset : offset+length], nil
	})
	if err != nil {
		return Object{}, fmt.Errorf("put segment %s: %w", ref.First, err)
	}
	if m != MetadataOf(ref) {
		return Object{}, fmt.Errorf("put segment %s: the file's metadata %+v is not that of the segment %+v", ref.First, m, MetadataOf(ref))
	}

	_, err = l.store.Put(ctx, key, body, Condition{IfNoneMatch: true})
	if err == nil {
		return Object{Key: key, Rows: ref.Rows, Bytes: int64(len(body))}, nil
	}
	if !errors.Is(err, ErrPrecondition) {
		return Object{}, fmt.Errorf("put segment %s: %w", ref.First, err)
	}
	o, found, findErr := l.find(ctx, ref, key)
	if findErr != nil {
		return Object{}, fmt.Errorf("put segment %s: %w", ref.First, findErr)
	}
	if !found {
		return Object{}, fmt.Errorf("put segment %s: the object was there a moment ago and is gone: does something delete objects from the lake? %w", ref.First, err)
	}
	return o, nil
}

func (l *Lake) find(ctx context.Context, ref segment.Ref, key string) (Object, bool, error) {
	if err := l.checkRef(ref); err != nil {
		return Object{}, false, fmt.Errorf("find segment: %w", err)
	}
	info, err := l.store.Head(ctx, key)
	if errors.Is(err, ErrNotFound) {
		return Object{}, false, nil
	}
	if err != nil {
		return Object{}, false, fmt.Errorf("find segment %s: %w", ref.First, err)
	}
	m, err := l.readMetadata(ctx, info)
	if errors.Is(err, ErrUnreadable) {
		return Object{}, false, fmt.Errorf("find segment %s: %w: %w", ref.First, ErrConflict, err)
	}
	if err != nil {
		return Object{}, false, fmt.Errorf("find segment %s: %w", ref.First, err)
	}
	if err := sameRows(m, ref); err != nil {
		return Object{}, false, fmt.Errorf("find segment %s: %w: %s/%s: %w", ref.First, ErrConflict, l.url, key, err)
	}
	return Object{Key: key, Rows: m.Rows, Bytes: info.Size, Existed: true}, true, nil
}

// sameRows compares what an object says of itself with the segment that was
// looked for. Follows is not compared: the object's is the one that stands.
func sameRows(m Metadata, ref segment.Ref) error {
	switch {
	case m.Pipeline != ref.Pipeline || m.SystemID != ref.SystemID:
		return fmt.Errorf("the object is of pipeline %q of system %s, not of %q of %s", m.Pipeline, m.SystemID, ref.Pipeline, ref.SystemID)
	case m.First != ref.First || m.Last != ref.Last:
		return fmt.Errorf("the object says that it goes from %s to %s", m.First, m.Last)
	case m.Digest != ref.Digest:
		return fmt.Errorf("the object's digest is %s with %d rows, the segment's is %s with %d: compare the publication, the message filter and the history of failovers with what they were when the object was written", m.Digest, m.Rows, ref.Digest, ref.Rows)
	}
	return nil
}

// checkRef refuses a reference that is not of this lake.
func (l *Lake) checkRef(ref segment.Ref) error {
	if err := ref.Validate(); err != nil {
		return err
	}
	if ref.Lake != l.url {
		return fmt.Errorf("segment %s belongs to the lake %s, and this is %s: point the worker at that lake", ref.First, ref.Lake, l.url)
	}
	return nil
}
