package lake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// Succession says that a pipeline went on with another cluster, such as the one
// that pg_upgrade made: with another system identifier, a timeline that begins
// at 1 again, and LSNs that go on.
type Succession struct {
	// SystemID is the successor's.
	SystemID string `json:"system_id"`
	// TimelineOffset is added to the successor's timelines, so that positions
	// keep growing.
	TimelineOffset change.Timeline `json:"timeline_offset"`
	Reason         string          `json:"reason"`
	At             time.Time       `json:"at"`
}

// Present is the cluster that the pipeline reads from now: its system
// identifier, and what is added to its timelines.
func (id Identity) Present() (systemID string, offset change.Timeline) {
	if n := len(id.Successions); n > 0 {
		return id.Successions[n-1].SystemID, id.Successions[n-1].TimelineOffset
	}
	return id.SystemID, 0
}

// Knows says whether the pipeline reads from that cluster or has read from it.
func (id Identity) Knows(systemID string) bool {
	if id.SystemID == systemID {
		return true
	}
	for _, s := range id.Successions {
		if s.SystemID == systemID {
			return true
		}
	}
	return false
}

// RecordSuccession adds a succession to the lake's identity and returns that.
// That it is the latest one already is success; the recorded offset stands then.
// ErrPrecondition if somebody else has written the identity meanwhile.
func (l *Lake) RecordSuccession(ctx context.Context, s Succession) (Identity, error) {
	fail := func(err error) (Identity, error) {
		return Identity{}, fmt.Errorf("record the succession to the Postgres system %s: %w", s.SystemID, err)
	}
	id, etag, err := l.readIdentity(ctx)
	if err != nil {
		return fail(err)
	}
	if present, _ := id.Present(); present == s.SystemID {
		return id, nil
	}
	if id.Knows(s.SystemID) || s.SystemID == "" || s.TimelineOffset == 0 {
		return fail(fmt.Errorf("it is no successor (timeline offset %d): %s knows the systems %s and %v", s.TimelineOffset, l.url, id.SystemID, id.Successions))
	}
	s.At = s.At.UTC().Round(0)
	id.Successions = append(id.Successions, s)
	body, err := encodeRecord(id)
	if err != nil {
		return fail(err)
	}
	_, err = l.store.Put(ctx, identityKey, body, Condition{IfMatch: etag})
	if errors.Is(err, ErrPrecondition) {
		// Our own write whose reply was lost, or somebody else's.
		there, _, readErr := l.readIdentity(ctx)
		if text, encErr := encodeRecord(there); readErr == nil && encErr == nil && bytes.Equal(text, body) {
			return there, nil
		}
	}
	if err != nil {
		return fail(err)
	}
	return id, nil
}
