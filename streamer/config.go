package streamer

import (
	"context"
	"log/slog"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
	"github.com/tidemark-cdc/tidemark/streamer/ring"
)

// Config says what a Streamer reads and how it cuts. The zero value of every
// field but Pipeline and Replication means the default.
type Config struct {
	// Pipeline is the pipeline's name.
	Pipeline string
	// Replication names the server, the slot and the publications.
	Replication replication.Config
	// Tables are those that the publications are to have, written as in
	// replication.Published. None: whatever they have when streaming begins.
	Tables []string
	// Ring bounds the ring and the segments.
	Ring ring.Config
	// Messages keeps logical messages (pg_logical_emit_message) as rows.
	Messages bool
	// LocalOnly leaves out transactions that were replicated into the server
	// from elsewhere. Both settings are part of what a segment's digest covers:
	// a recorded segment that was read with others is a stop.
	LocalOnly bool
	// MaxInFlight bounds the segments that are dispatched and not finished.
	// Default 64.
	MaxInFlight int
	// ShutdownTimeout bounds how long a graceful stop waits for segments in
	// flight. Default 60 s; negative is not at all.
	ShutdownTimeout time.Duration

	// WAL says when the WAL that is kept for the slot is logged as a warning or an
	// alarm. Zero: only by the share of max_slot_wal_keep_size that is in use.
	WAL WALLimits

	// watchEvery is how often the slot is looked at. Default 5 s; tests set it.
	watchEvery time.Duration
	// remindEvery is how often a run that goes on is told again where the rows
	// are. Default 5 min; tests set it.
	remindEvery time.Duration
	// driftEvery is how often the published tables are looked at. Default 1 min;
	// tests set it.
	driftEvery time.Duration
	// pauseEvery is how often the lake is asked whether the pipeline is paused.
	// Default 3 s; tests set it.
	pauseEvery time.Duration
}

func (c Config) withDefaults() Config {
	if c.MaxInFlight <= 0 {
		c.MaxInFlight = 64
	}
	if c.watchEvery <= 0 {
		c.watchEvery = watchEvery
	}
	if c.remindEvery == 0 {
		c.remindEvery = 5 * time.Minute
	}
	if c.driftEvery <= 0 {
		c.driftEvery = time.Minute
	}
	if c.pauseEvery <= 0 {
		c.pauseEvery = 3 * time.Second
	}
	switch {
	case c.ShutdownTimeout == 0:
		c.ShutdownTimeout = time.Minute
	case c.ShutdownTimeout < 0:
		c.ShutdownTimeout = 0
	}
	if c.Ring.SegmentRows <= 0 {
		c.Ring.SegmentRows = ring.DefaultSegmentRows
	}
	if c.Ring.SegmentBytes <= 0 {
		c.Ring.SegmentBytes = ring.DefaultSegmentBytes
	}
	return c
}

// Deps are what a Streamer works with. All but Observer and Tracer are required.
type Deps struct {
	Tracker  Tracker
	Lake     Lake
	Logger   *slog.Logger
	Observer Observer
	Tracer   Tracer
}

// Tracker is the durable record of segments: Temporal. Its methods retry what
// is worth retrying until ctx ends, so an error of theirs is final or ctx's.
// Safe for concurrent use.
type Tracker interface {
	// Start has the segment's workflow started, unless one is recorded under
	// its ID: then that one's Record is returned, with Started false. A record
	// that was given up for good is none.
	Start(ctx context.Context, ref segment.Ref, at segment.Location) (segment.Record, error)
	// Restart starts a Broken segment again under the same ID. If a run is open
	// or has completed by then, that one's Record is returned instead.
	Restart(ctx context.Context, ref segment.Ref, at segment.Location) (segment.Record, error)
	// Redirect tells a running segment where its rows are now. That the run has
	// closed meanwhile is no error.
	Redirect(ctx context.Context, rec segment.Record, at segment.Location) error
	// Await blocks until the segment's run has closed, and returns its Record;
	// that of another run, with State Running, if one was opened instead; or one
	// with State None if the workflow is no longer known.
	Await(ctx context.Context, rec segment.Record) (segment.Record, error)
}

// Lake is what the streamer reads and writes of the lake: its identity, its own
// record of the ack, whether the pipeline is paused, and, while catching up, which
// segments are there already.
// *lake.Lake is the implementation.
type Lake interface {
	URL() string
	ReadIdentity(ctx context.Context) (lake.Identity, error)
	ReadAck(ctx context.Context) (lake.AckRecord, string, error)
	WriteAck(ctx context.Context, rec lake.AckRecord, etag string) (string, error)
	Day(ctx context.Context, day change.Day) (*lake.DayIndex, error)
	Divergences(ctx context.Context) (lake.Divergences, error)
	ReadMetadata(ctx context.Context, key string) (lake.Metadata, error)
	ReadPause(ctx context.Context) (*lake.Pause, error)
}
