package lake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// ackKey holds the lake's AckRecord.
const ackKey = recordsFolder + "ack.json"

// AckRecord is the lake's own record of how far it is complete. It is written
// before the ack is reported to Postgres.
type AckRecord struct {
	// Last is the end of the contiguous prefix of finished segments: every
	// change up to it is in the lake, and the next segment follows it. Before
	// the first segment it is Identity.Head.
	Last change.Position `json:"last"`
	// LastTime is the commit time of the change at Last: a non-transactional
	// message that comes next has none of its own and takes this one. Before
	// the first segment it is Identity.CreatedAt.
	LastTime time.Time `json:"last_time"`
	// Ack is the LSN that may be reported to Postgres.
	Ack change.LSN `json:"ack"`
	// Timeline is the one that Ack is on.
	Timeline change.Timeline `json:"timeline"`
	// Writer names the process that wrote the record, new at every start, and
	// Seq counts its writes: together they tell one write from all others.
	Writer string    `json:"writer"`
	Seq    int64     `json:"seq"`
	At     time.Time `json:"at"`
}

// ReadAck reads _tidemark/ack.json and the ETag to replace it by. ErrNotFound
// if there is none yet.
func (l *Lake) ReadAck(ctx context.Context) (AckRecord, string, error) {
	var rec AckRecord
	etag, err := l.readRecord(ctx, ackKey, &rec)
	if err != nil {
		return AckRecord{}, "", fmt.Errorf("read the lake's ack: %w", err)
	}
	return rec, etag, nil
}

// WriteAck replaces the record that has the given ETag, or creates it if etag
// is empty, and returns the new ETag. That the very record is there already, since
// an earlier call has written it and the reply was lost, is success.
// ErrPrecondition if anything else has been written: by a second streamer, or by
// an earlier call of this process that had been given up.
func (l *Lake) WriteAck(ctx context.Context, rec AckRecord, etag string) (string, error) {
	if rec.Writer == "" {
		return "", fmt.Errorf("write the lake's ack: the record names no writer")
	}
	rec.At = rec.At.UTC()
	body, err := encodeRecord(rec)
	if err != nil {
		return "", fmt.Errorf("write the lake's ack: %w", err)
	}
	written, err := l.store.Put(ctx, ackKey, body, Condition{IfNoneMatch: etag == "", IfMatch: etag})
	if err == nil {
		return written, nil
	}
	if !errors.Is(err, ErrPrecondition) {
		return "", fmt.Errorf("write the lake's ack: %w", err)
	}
	there, thereTag, readErr := l.ReadAck(ctx)
	switch {
	case errors.Is(readErr, ErrNotFound):
		return "", fmt.Errorf("write the lake's ack: %s/%s has been deleted since it was read: stop whatever deletes from the lake, run verify, then restart: %w", l.url, ackKey, err)
	case readErr != nil:
		return "", fmt.Errorf("write the lake's ack: %w", readErr)
	}
	// The whole record, not Writer and Seq alone: a process that has begun again
	// from the record may count a write that it had given up, and that has come
	// through after all, a second time.
	if text, err := encodeRecord(there); err == nil && bytes.Equal(text, body) {
		return thereTag, nil
	}
	return "", fmt.Errorf("write the lake's ack: %s/%s was written by %q at %s (ack %s), not by us: another streamer writes to this lake; stop one of the two: %w",
		l.url, ackKey, there.Writer, there.At.Format(time.RFC3339), there.Ack, err)
}
