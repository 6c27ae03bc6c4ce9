package settle

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// DefaultGrace is how long the attempt of a segment that was given up may go on:
// it learns of that by its next heartbeat, due within 30 s.
const DefaultGrace = 40 * time.Second

// Config says what is to be settled, and what may be done for it.
type Config struct {
	Pipeline string
	// Slot is the slot's name; Failover makes a new one for standbys too (17).
	Slot     string
	Failover bool
	// System and History are what the server says of itself.
	System  replication.System
	History replication.History
	// Recreate allows to make the slot anew if it is gone or was invalidated.
	// Replace does it even if the slot can be read: its publication is gone.
	Recreate, Replace bool
	// Publish, if set, is called when there is no slot any more and before a new
	// one is made: what the stream is to be read with must be there by then.
	Publish func(context.Context) error
	// Upgraded says that the server was made by pg_upgrade from the one that the
	// lake knows. OldEnd, if not zero, is where the WAL of that one ended (the
	// latest checkpoint location of pg_controldata): if the ack reaches there,
	// nothing is missing in between.
	Upgraded bool
	OldEnd   change.LSN
	// Writer names this process in ack.json.
	Writer string
	// Grace is as DefaultGrace, which zero means.
	Grace time.Duration
}

// Postgres is what is asked of the server; *replication.Admin implements it.
type Postgres interface {
	Slot(ctx context.Context) (replication.SlotInfo, error)
	CreateSlot(ctx context.Context, name string, failover bool) (change.LSN, error)
	DropSlot(ctx context.Context, name string) (bool, error)
	FlushLSN(ctx context.Context) (change.LSN, error)
}

// Segments is what is asked of Temporal; *tracker.Tracker implements it.
type Segments interface {
	Unfinished(ctx context.Context, pipeline string, after change.Position) ([]segment.Record, error)
	GiveUp(ctx context.Context, rec segment.Record, why string) (uploading bool, err error)
}

// Deps are what a Case works with. All are required.
type Deps struct {
	Lake     *lake.Lake
	Postgres Postgres
	Segments Segments
}

// RefusedError is a situation that cannot be settled in this way. Nothing was
// changed.
type RefusedError struct {
	// What is the case, and Do what to do instead.
	What, Do string
}

func (e *RefusedError) Error() string { return e.What + ": " + e.Do }

func refuse(do, what string, args ...any) error {
	return &RefusedError{What: fmt.Sprintf(what, args...), Do: do}
}

// Case is one situation. Make it with Look.
type Case struct {
	cfg  Config
	deps Deps

	// What was read.
	identity lake.Identity
	rec      lake.AckRecord
	etag     string
	gaps     []lake.Gap
	recorded lake.Divergences
	slot     *replication.SlotInfo
	flushed  change.LSN
	// objects are those of the lake beyond what the record covers and has
	// survived, in stream order; kept is the last position of the others.
	objects    []object
	kept       change.Position
	keptDay    change.Day
	unfinished []segment.Record

	plan
}

// object is one of the lake's, with what it says of itself.
type object struct {
	first, last, follows change.Position
	day                  change.Day
	key                  string
	rows                 int64
}

// Look finds out what the situation is. The error is a *RefusedError if it
// cannot be settled, or one of Postgres, the lake or Temporal.
func Look(ctx context.Context, cfg Config, deps Deps) (*Case, error) {
	if cfg.Grace == 0 {
		cfg.Grace = DefaultGrace
	}
	c := &Case{cfg: cfg, deps: deps}
	if err := c.read(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// SlotLost says that there is no slot that goes on where the lake's record ends.
func (c *Case) SlotLost() bool { return c.ahead }

// Nothing says that there is nothing to settle.
func (c *Case) Nothing() bool { return len(c.steps) == 0 }

// Found says what the situation is, a sentence each.
func (c *Case) Found() []string { return c.found }

// Steps says what Do does, a sentence each.
func (c *Case) Steps() []string { return c.steps }

// offset is what the server's timelines are shifted by: by the lake's identity,
// or as they will be once the succession is recorded.
func (c *Case) offset() change.Timeline {
	present, offset := c.identity.Present()
	if present == c.cfg.System.SystemID {
		return offset
	}
	// The first timeline of the successor comes after every one of the lake.
	last := max(c.rec.Timeline, c.rec.Last.Timeline, c.kept.Timeline, offset+1)
	for _, o := range c.objects {
		last = max(last, o.last.Timeline)
	}
	for _, u := range c.unfinished {
		last = max(last, u.Ref.Last.Timeline)
	}
	return last
}
