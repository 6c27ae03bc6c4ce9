package activities

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// Observer is told what attempts do, for metrics. Its methods are called from
// many goroutines at once and return without waiting for anything.
type Observer interface {
	// Attempted: an attempt of "upload", "quarantine" or "replay" has ended. class is the
	// Class of its error, empty if it has none.
	Attempted(action, class string)
	// Stepped: an attempt has spent took on "look", "wait", "fetch", "encode" or
	// "store", whether or not it got any further.
	Stepped(step string, took time.Duration)
	// Decoded: n changes of an operation were decoded and encoded.
	Decoded(operation string, n int64)
	// Stored: the attempt has stored an object that was not there before.
	Stored(rows, bytes int64, quarantined bool)
}

// observed gives a's Observer, which may be none.
func (a *Activities) observed() Observer {
	if a.Observer == nil {
		return unobserved{}
	}
	return a.Observer
}

type unobserved struct{}

func (unobserved) Attempted(string, string)      {}
func (unobserved) Stepped(string, time.Duration) {}
func (unobserved) Decoded(string, int64)         {}
func (unobserved) Stored(int64, int64, bool)     {}

// stepping is the step that an attempt is in, and since when.
type stepping struct {
	step  Step
	since time.Time
}

// move tells o of the step that ends by going on to next, which is empty at the
// end of the attempt.
func (s *stepping) move(o Observer, next Step, now time.Time) {
	if next == s.step {
		return
	}
	if s.step != "" {
		o.Stepped(s.step.Word(), now.Sub(s.since))
	}
	*s = stepping{step: next, since: now}
}

// Word names a step in one word.
func (s Step) Word() string {
	word, _, _ := strings.Cut(string(s), " ")
	return word
}

// classOf is the class that toTemporal gives to err; empty for none.
func classOf(ctx context.Context, err error) Class {
	var p *problem
	switch {
	case err == nil:
		return ""
	case ctx.Err() != nil:
		return AttemptStopped
	case errors.As(err, &p):
		return p.class
	}
	return StoreFailed
}

// operations counts changes by operation.
type operations [change.Message + 1]int64

func (c *operations) add(batch []change.Change) {
	for i := range batch {
		if op := batch[i].Operation; op <= change.Message {
			c[op]++
		}
	}
}

func (c *operations) tell(o Observer) {
	for op := change.Insert; op <= change.Message; op++ {
		if n := c[op]; n > 0 {
			o.Decoded(op.String(), n)
		}
	}
}
