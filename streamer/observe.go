package streamer

import (
	"errors"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// Observer is told of what a Status cannot show, for metrics. Its methods are
// called from many goroutines at once and return without waiting for anything.
type Observer interface {
	// Reconnected: streaming goes on over a new connection. cause is why the one
	// before has ended: "server_shutdown", "slot_in_use", "connection_lost", or
	// "new_life" when the streamer began again from the lake's record.
	Reconnected(cause string)
	// InLake: a segment that this process dispatched, or adopted unfinished, was
	// seen to have completed, sinceCommit after the commit of its first change by
	// the server's clock. Never negative.
	InLake(rows int64, sinceCommit time.Duration)
	// Restarted: the workflow of a segment in flight had ended without the object
	// and is started again. why is one of Endings: "closed" (it failed, or
	// somebody terminated or canceled it), "forgotten" (Temporal does not know it
	// any more, so somebody deleted it).
	Restarted(why string)
}

// The ways in which the workflow of a segment in flight may have ended.
const (
	endingClosed    = "closed"
	endingForgotten = "forgotten"
)

// Endings lists what an Observer may be told by Restarted.
func Endings() []string { return []string{endingClosed, endingForgotten} }

// The causes that an Observer may be told.
const (
	causeServerShutdown = "server_shutdown"
	causeSlotInUse      = "slot_in_use"
	causeLost           = "connection_lost"
	causeNewLife        = "new_life"
)

// Causes lists the causes that an Observer may be told.
func Causes() []string {
	return []string{causeServerShutdown, causeSlotInUse, causeLost, causeNewLife}
}

// causeOf names why a connection has ended, in one of a few words.
func causeOf(err error) string {
	switch {
	// ErrClosed: watch has let a server go that shuts down.
	case errors.Is(err, replication.ErrServerShutdown), errors.Is(err, replication.ErrClosed):
		return causeServerShutdown
	case errors.Is(err, replication.ErrSlotInUse):
		return causeSlotInUse
	}
	return causeLost
}

type unobserved struct{}

func (unobserved) Reconnected(string)          {}
func (unobserved) InLake(int64, time.Duration) {}
func (unobserved) Restarted(string)            {}

// tally counts changes by operation, and their raw bytes.
type tally struct {
	operations [change.Message + 1]int64
	bytes      int64
}

// add counts c. It is on the ordered path.
func (t *tally) add(c *change.Change) {
	if int(c.Operation) < len(t.operations) {
		t.operations[c.Operation]++
	}
	t.bytes += int64(len(c.Raw))
}

func (t *tally) addAll(u tally) {
	for i, n := range u.operations {
		t.operations[i] += n
	}
	t.bytes += u.bytes
}

// byOperation has every operation, also those of which there was none.
func (t *tally) byOperation() map[string]int64 {
	m := make(map[string]int64, len(t.operations))
	for op := change.Insert; op <= change.Message; op++ {
		m[op.String()] = t.operations[op]
	}
	return m
}
