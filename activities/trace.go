package activities

import (
	"context"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// Tracer is told of each attempt when it has ended, for traces. It is called
// from many goroutines at once and returns without waiting for anything. ctx is
// the attempt's.
type Tracer interface {
	Traced(ctx context.Context, a TracedAttempt)
}

// TracedAttempt is how an attempt went.
type TracedAttempt struct {
	// Action is "upload", "quarantine" or "replay".
	Action string
	Ref    segment.Ref
	// Number counts the attempts from 1, anew whenever the workflow schedules the
	// activity.
	Number   int32
	From, To time.Time
	// Class is that of the error; empty if there is none.
	Class Class
	// Result is what is in the lake, if there is no error.
	Result UploadResult
	// Steps are what was done, in order. The last one is what the error is about.
	Steps []TracedStep
}

// TracedStep is a step of an attempt.
type TracedStep struct {
	Step     Step
	From, To time.Time
	// Rows and Bytes are those of the last heartbeat that it could have sent.
	Rows, Bytes int64
}

// ended tells how the attempt went, when it is over.
func (t *attempt) ended(ctx context.Context, out UploadResult, err error) {
	class := classOf(ctx, err)
	t.observer.Attempted(t.action, string(class))
	if t.tracer == nil {
		return
	}
	now := time.Now()
	t.steps.last(now)
	t.tracer.Traced(ctx, TracedAttempt{
		Action: t.action, Ref: t.in.Ref, Number: t.number, From: t.begun, To: now,
		Class: class, Result: out, Steps: t.steps,
	})
}

// steps are those that an attempt has gone through, for its Tracer.
type steps []TracedStep

// enter notes that a step goes on, or begins.
func (s *steps) enter(step Step, rows, bytes int64, now time.Time) {
	n := len(*s)
	if n == 0 || (*s)[n-1].Step != step {
		s.last(now)
		*s = append(*s, TracedStep{Step: step, From: now})
		n++
	}
	(*s)[n-1].Rows, (*s)[n-1].Bytes = rows, bytes
}

// last ends the last step.
func (s steps) last(now time.Time) {
	if n := len(s); n > 0 {
		s[n-1].To = now
	}
}
