package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// Class is the type name of an activity's error in Temporal.
type Class string

// Errors that a later attempt can mend; Temporal retries them.
const (
	RowsNotYet         Class = "RowsNotYet"
	RowsGone           Class = "RowsGone"
	RowsUnknown        Class = "RowsUnknown"
	RowsDiffer         Class = "RowsDiffer"
	FetchFailed        Class = "FetchFailed"
	EncodeFailed       Class = "EncodeFailed"
	ReadBackFailed     Class = "ReadBackFailed"
	StoreThrottled     Class = "StoreThrottled"
	StoreUnavailable   Class = "StoreUnavailable"
	StoreUnreachable   Class = "StoreUnreachable"
	StoreDenied        Class = "StoreDenied"
	StoreMissingBucket Class = "StoreMissingBucket"
	StoreMisconfigured Class = "StoreMisconfigured"
	StoreFull          Class = "StoreFull"
	StoreFailed        Class = "StoreFailed"
	AttemptStopped     Class = "AttemptStopped"
	WorkerTooOld       Class = "WorkerTooOld"
)

// Permanent errors: the same attempt would fail again, and someone has to act.
const (
	MalformedMessage  Class = "MalformedMessage"
	RowTooLarge       Class = "RowTooLarge"
	LakeConflict      Class = "LakeConflict"
	AnotherLake       Class = "AnotherLake"
	BadReference      Class = "BadReference"
	NotInQuarantine   Class = "NotInQuarantine"
	QuarantineDamaged Class = "QuarantineDamaged"
)

// Classes lists them all.
func Classes() []Class {
	return []Class{
		RowsNotYet, RowsGone, RowsUnknown, RowsDiffer, FetchFailed, EncodeFailed, ReadBackFailed,
		StoreThrottled, StoreUnavailable, StoreUnreachable, StoreDenied, StoreMissingBucket, StoreMisconfigured, StoreFull, StoreFailed,
		AttemptStopped, WorkerTooOld,
		MalformedMessage, RowTooLarge, LakeConflict, AnotherLake, BadReference, NotInQuarantine, QuarantineDamaged,
	}
}

// Permanent says whether an error of this class is not retried.
func (c Class) Permanent() bool {
	switch c {
	case MalformedMessage, RowTooLarge, LakeConflict, AnotherLake, BadReference, NotInQuarantine, QuarantineDamaged:
		return true
	}
	return false
}

// Undecodable says that the rows themselves are the obstacle, so that quarantine
// is a way out.
func (c Class) Undecodable() bool { return c == MalformedMessage || c == RowTooLarge }

// problem is an error on its way to Temporal.
type problem struct {
	class Class
	cause error
	// advice says what to do, or what happens next.
	advice string
	// after is the pause before the next attempt; zero is Temporal's backoff.
	after time.Duration
}

func (p *problem) Error() string {
	if p.advice == "" {
		return p.cause.Error()
	}
	return p.cause.Error() + ": " + p.advice
}

func (p *problem) Unwrap() error { return p.cause }

func fail(class Class, cause error, advice string) error {
	return &problem{class: class, cause: cause, advice: advice}
}

// storeError sorts what the lake said of an action.
func storeError(action string, err error) error {
	failure := lake.Class(err)
	class, ok := map[lake.FailureKind]Class{
		lake.Conflict:      LakeConflict,
		lake.Throttled:     StoreThrottled,
		lake.Unavailable:   StoreUnavailable,
		lake.Unreachable:   StoreUnreachable,
		lake.Denied:        StoreDenied,
		lake.MissingBucket: StoreMissingBucket,
		lake.Misconfigured: StoreMisconfigured,
		lake.Full:          StoreFull,
	}[failure.Kind]
	if !ok {
		class = StoreFailed
	}
	advice := "it is tried again"
	if class.Permanent() {
		advice = "nothing was overwritten; find out which of the two is right (`tidemark verify` shows the object), " +
			"and if the object is not, move it out of the lake and send the update retry"
	}
	return &problem{class: class, cause: fmt.Errorf("%s: %w", action, err), advice: advice, after: min(max(failure.RetryAfter, 0), maxRetryAfter)}
}

// notYetAfter is the pause after RowsNotYet: the streamer is reading the rows
// again, and nothing but the next attempt tells that it has them.
const notYetAfter = 2 * time.Second

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
	var p *problem
	if !errors.As(err, &p) {
		p = &problem{class: StoreFailed, cause: err}
	}
	return temporal.NewApplicationErrorWithOptions(fmt.Sprintf("%s: %s", where, p), string(p.class),
		temporal.ApplicationErrorOptions{NonRetryable: p.class.Permanent(), NextRetryDelay: p.after})
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
	// The worker is being stopped, or Temporal no longer hears of the attempt.
	return temporal.NewApplicationErrorWithOptions("the attempt was stopped: "+cause.Error()+": it is tried again", string(AttemptStopped),
		temporal.ApplicationErrorOptions{NextRetryDelay: time.Millisecond})
}
