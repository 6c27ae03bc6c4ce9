package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// Class is the type name of an activity's error in Temporal.
type Class string

// Errors that a later attempt can mend; Temporal retries them.
const (
	RowsNotYet    Class = "RowsNotYet"
	RowsGone      Class = "RowsGone"
	RowsUnknown   Class = "RowsUnknown"
	FetchFailed   Class = "FetchFailed"
	RowsDiffer    Class = "RowsDiffer"
	EncodeFailed  Class = "EncodeFailed"
	StoreFailed   Class = "StoreFailed"
	WorkerStopped Class = "WorkerStopped"
	WorkerTooOld  Class = "WorkerTooOld"
)

// Permanent errors: the same attempt would fail again, and someone has to act.
const (
	MalformedMessage Class = "MalformedMessage"
	LakeConflict     Class = "LakeConflict"
	AnotherLake      Class = "AnotherLake"
	BadReference     Class = "BadReference"
)

// Permanent says whether an error of this class is not retried.
func (c Class) Permanent() bool {
	switch c {
	case MalformedMessage, LakeConflict, AnotherLake, BadReference:
		return true
	}
	return false
}

// failure is an error on its way to Temporal.
type failure struct {
	class Class
	cause error
	// advice says what to do, or what happens next.
	advice string
}

func (f *failure) Error() string {
	if f.advice == "" {
		return f.cause.Error()
	}
	return f.cause.Error() + ": " + f.advice
}

func (f *failure) Unwrap() error { return f.cause }

func fail(class Class, cause error, advice string) error {
	return &failure{class: class, cause: cause, advice: advice}
}

// retryAfter is implemented by errors of a store that asks for a pause.
type retryAfter interface{ RetryAfter() time.Duration }

// maxRetryAfter bounds what a store may ask for: longer than this nobody should
// wait without another look.
const maxRetryAfter = 10 * time.Minute

// toTemporal turns what became of an attempt into Temporal's own error. The
// text begins with the segment, so that it can be read anywhere.
func toTemporal(ctx context.Context, action string, ref segment.Ref, err error) error {
	if err == nil {
		return nil
	}
	if stop := stopped(ctx); stop != nil {
		return stop
	}
	where := fmt.Sprintf("%s segment %s of pipeline %s (LSN %s to %s)", action, ref.First, ref.Pipeline, ref.First.LSN, ref.Last.LSN)
	var f *failure
	if !errors.As(err, &f) {
		f = &failure{class: StoreFailed, cause: err}
	}
	opts := temporal.ApplicationErrorOptions{NonRetryable: f.class.Permanent()}
	var after retryAfter
	if errors.As(err, &after) && !opts.NonRetryable {
		opts.NextRetryDelay = min(max(after.RetryAfter(), 0), maxRetryAfter)
	}
	return temporal.NewApplicationErrorWithOptions(fmt.Sprintf("%s: %s", where, f.Error()), string(f.class), opts)
}

// stopped says how to end an attempt that was stopped from outside, or nil. The
// SDK tells these causes apart by the very error that is returned: a cancellation
// is reported as one only if the server has asked for it.
func stopped(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, activity.ErrActivityPaused), errors.Is(cause, activity.ErrActivityReset):
		return cause
	case temporal.IsCanceledError(cause), errors.Is(cause, context.Canceled):
		return temporal.NewCanceledError()
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		// Temporal has timed the attempt out by itself; nobody hears this.
		return ctx.Err()
	}
	// The worker is being stopped, or Temporal no longer knows the attempt.
	return temporal.NewApplicationErrorWithOptions("the attempt was stopped: "+cause.Error()+": it is tried again", string(WorkerStopped),
		temporal.ApplicationErrorOptions{NextRetryDelay: time.Millisecond})
}
