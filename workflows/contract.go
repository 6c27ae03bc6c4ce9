package workflows

import (
	"time"

	"github.com/tidemark-cdc/tidemark/activities"
	"github.com/tidemark-cdc/tidemark/internal/ahead"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// SegmentName is the workflow's type. Recorded histories carry it, and the names
// below: they never change.
const SegmentName = "Segment"

const (
	// SourceSignal tells where the rows are now; its payload is a
	// segment.Location. The running attempt is canceled and scheduled again.
	SourceSignal = "source"
	// RetryUpdate asks for another attempt now; no argument.
	RetryUpdate = "retry"
	// QuarantineUpdate puts a waiting segment's raw messages aside; no argument.
	// It returns when that is done.
	QuarantineUpdate = "quarantine"
)

// Version is the version of the input and result that this package writes, and
// the greatest one that it understands.
const Version = 1 + ahead.Versions

// The default bounds of one attempt.
const (
	DefaultStartToClose = 10 * time.Minute
	DefaultHeartbeat    = 30 * time.Second
)

// TaskQueue is the default task queue of a pipeline.
func TaskQueue(pipeline string) string { return "tidemark-" + pipeline }

// SegmentInput starts a Segment.
type SegmentInput struct {
	Version int              `json:"version"`
	Ref     segment.Ref      `json:"ref"`
	Source  segment.Location `json:"source"`
	Limits  Limits           `json:"limits,omitzero"`
	// Again says that an earlier workflow of this ID was broken off, and may
	// have stored the object.
	Again bool `json:"again,omitempty"`
}

// Limits bound one attempt of an activity.
type Limits struct {
	// StartToCloseSeconds bounds a whole attempt, HeartbeatSeconds the silence
	// of its worker. Zero is the default.
	StartToCloseSeconds int64 `json:"start_to_close_seconds,omitempty"`
	HeartbeatSeconds    int64 `json:"heartbeat_seconds,omitempty"`
}

func (l Limits) startToClose() time.Duration {
	return secondsOr(l.StartToCloseSeconds, DefaultStartToClose)
}

func (l Limits) heartbeat() time.Duration {
	return secondsOr(l.HeartbeatSeconds, DefaultHeartbeat)
}

func secondsOr(n int64, otherwise time.Duration) time.Duration {
	if n <= 0 {
		return otherwise
	}
	return time.Duration(n) * time.Second
}

// SegmentResult is what a completed Segment leaves behind.
type SegmentResult struct {
	Version int                 `json:"version"`
	Ref     segment.Ref         `json:"ref"`
	Objects []activities.Object `json:"objects"`
	// Existed says that an earlier attempt, or an earlier run, had stored the
	// object.
	Existed bool `json:"existed,omitempty"`
	// Quarantined says that Objects are raw messages below _quarantine/.
	Quarantined bool `json:"quarantined,omitempty"`
}

// RetryReply answers the update retry.
type RetryReply struct {
	Message string `json:"message"`
}
