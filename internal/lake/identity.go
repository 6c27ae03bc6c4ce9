package lake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// identityKey holds the lake's Identity.
const identityKey = recordsFolder + "pipeline.json"

// ErrForeign: the lake belongs to another pipeline or another database.
var ErrForeign = errors.New("the lake belongs to another pipeline")

// Identity says whose lake it is. It is created once; nothing is ever changed in
// it, and Successions alone are added.
type Identity struct {
	// Format is the version of the lake's format. CreateIdentity fills it in.
	Format   int    `json:"format"`
	Pipeline string `json:"pipeline"`
	// SystemID is the system identifier of the Postgres cluster that the pipeline
	// was set up with; Present says which one it reads from now.
	SystemID string `json:"system_id"`
	// StartLSN is the slot's starting LSN, and Timeline the one it was on:
	// nothing that was committed before is in the lake.
	Timeline change.Timeline `json:"timeline"`
	StartLSN change.LSN      `json:"start_lsn"`
	// Database and Slot are for people, and for whoever takes down what setup
	// has made.
	Database string `json:"database,omitempty"`
	Slot     string `json:"slot,omitempty"`
	// Publications are those that the slot is read with, and
	// CreatedPublication says that setup has made them.
	Publications       []string  `json:"publications,omitempty"`
	CreatedPublication bool      `json:"created_publication,omitempty"`
	CreatedAt          time.Time `json:"created_at,omitzero"`
	// Successions are the clusters that have followed, oldest first.
	Successions []Succession `json:"successions,omitempty"`
}

// Head is the position that the lake's first segment follows.
func (id Identity) Head() change.Position { return change.JustBefore(id.Timeline, id.StartLSN) }

// FirstAck is the record of a lake in which nothing is acknowledged yet.
func (id Identity) FirstAck() AckRecord {
	return AckRecord{Last: id.Head(), LastTime: id.CreatedAt, Ack: id.StartLSN, Timeline: id.Timeline}
}

// Check refuses a pipeline that the lake does not belong to: ErrForeign.
func (id Identity) Check(pipeline, systemID string) error {
	present, _ := id.Present()
	switch {
	case id.Pipeline != pipeline:
		return fmt.Errorf("%w: it is the lake of pipeline %q, and this is %q: two pipelines must not share a prefix, so give this one its own", ErrForeign, id.Pipeline, pipeline)
	case present == systemID:
		return nil
	case id.Knows(systemID):
		return fmt.Errorf("%w: it goes on with the Postgres with the system identifier %s, which has followed this one (%s): connect to the new server", ErrForeign, present, systemID)
	default:
		return fmt.Errorf("%w: it was written from the Postgres with the system identifier %s, and this one has %s (a restored copy, a clone, or another server): give it a pipeline name and a prefix of its own; only if this server was made from that one by pg_upgrade, tidemark resolve --upgraded goes on with it", ErrForeign, present, systemID)
	}
}

// ReadIdentity reads _tidemark/pipeline.json. ErrNotFound if nobody has set
// this lake up.
func (l *Lake) ReadIdentity(ctx context.Context) (Identity, error) {
	id, _, err := l.readIdentity(ctx)
	return id, err
}

// readIdentity also gives the ETag to replace it by.
func (l *Lake) readIdentity(ctx context.Context) (Identity, string, error) {
	var id Identity
	etag, err := l.readRecord(ctx, identityKey, &id)
	if err != nil {
		return Identity{}, "", fmt.Errorf("read the lake's identity: %w", err)
	}
	if id.Format < 1 || id.Format > FormatVersion {
		return Identity{}, "", fmt.Errorf("read the lake's identity: %s has format version %d, and the newest known here is %d: use a newer Tidemark", l.url, id.Format, FormatVersion)
	}
	return id, etag, nil
}

// CreateIdentity writes _tidemark/pipeline.json if it does not exist. An equal
// one that exists is success, so a call whose reply was lost can be repeated.
// Otherwise ErrPrecondition, and ErrForeign too if it is another pipeline's.
func (l *Lake) CreateIdentity(ctx context.Context, id Identity) error {
	if id.Pipeline == "" || id.SystemID == "" || id.Timeline == 0 || id.StartLSN == 0 {
		return fmt.Errorf("create the lake's identity: pipeline %q, system %q, timeline %d and start %s must all be known", id.Pipeline, id.SystemID, id.Timeline, id.StartLSN)
	}
	id.Format = FormatVersion
	// Neither the zone nor a monotonic reading survives JSON.
	id.CreatedAt = id.CreatedAt.UTC().Round(0)
	body, err := encodeRecord(id)
	if err != nil {
		return fmt.Errorf("create the lake's identity: %w", err)
	}
	_, err = l.store.Put(ctx, identityKey, body, Condition{IfNoneMatch: true})
	if err == nil {
		return nil
	}
	if !errors.Is(err, ErrPrecondition) {
		return fmt.Errorf("create the lake's identity: %w", err)
	}
	there, readErr := l.ReadIdentity(ctx)
	if readErr != nil {
		return fmt.Errorf("create the lake's identity: %w", readErr)
	}
	// As texts, since an empty list and none are the same there.
	if text, err := encodeRecord(there); err == nil && bytes.Equal(text, body) {
		return nil
	}
	if foreign := there.Check(id.Pipeline, id.SystemID); foreign != nil {
		return fmt.Errorf("create the lake's identity: %w: %w", foreign, err)
	}
	return fmt.Errorf("create the lake's identity: this pipeline was set up here before, with a slot that started at %s on timeline %d: %w", there.StartLSN, there.Timeline, err)
}
