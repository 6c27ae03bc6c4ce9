package lake

import (
	"context"
	"errors"
	"time"
)

// FailureKind is the sort of a store's failure, by what there is to do.
type FailureKind string

// The sorts of failures.
const (
	// Unknown: anything not listed here.
	Unknown FailureKind = "unknown"
	// Missing: there is no such object (ErrNotFound).
	Missing FailureKind = "missing"
	// Precondition: a conditional write met another state (ErrPrecondition).
	Precondition FailureKind = "precondition"
	// Conflict: the object of this segment holds other rows (ErrConflict), or
	// the lake belongs to another pipeline (ErrForeign).
	Conflict FailureKind = "conflict"
	// Throttled: the store asks for fewer requests.
	Throttled FailureKind = "throttled"
	// Unavailable: the store answered that it cannot do it now.
	Unavailable FailureKind = "unavailable"
	// Unreachable: no answer: no connection, or none in time.
	Unreachable FailureKind = "unreachable"
	// Denied: the credentials are missing, wrong or not allowed to do this.
	Denied FailureKind = "denied"
	// MissingBucket: the bucket does not exist.
	MissingBucket FailureKind = "missing bucket"
	// Misconfigured: the store refuses the request as it is, such as for a
	// wrong region or a storage class that it does not know.
	Misconfigured FailureKind = "misconfigured"
	// Full: no space is left.
	Full FailureKind = "full"
	// Canceled: the caller's context ended.
	Canceled FailureKind = "canceled"
)

// Failure is what Class makes of an error.
type Failure struct {
	Kind FailureKind
	// RetryAfter is how long the store asked us to wait before the next
	// request; zero if it did not say.
	RetryAfter time.Duration
}

// Passing says that the same call can succeed later with nothing changed on
// our side.
func (f Failure) Passing() bool {
	switch f.Kind {
	case Throttled, Unavailable, Unreachable, Full:
		return true
	}
	return false
}

// Class sorts an error of this package. The Kind of nil is "".
func Class(err error) Failure {
	if err == nil {
		return Failure{}
	}
	if errors.Is(err, ErrConflict) || errors.Is(err, ErrForeign) {
		return Failure{Kind: Conflict}
	}
	var e *Error
	switch {
	case errors.As(err, &e):
		return Failure{Kind: e.Kind, RetryAfter: e.RetryAfter}
	case errors.Is(err, ErrPrecondition):
		return Failure{Kind: Precondition}
	case errors.Is(err, ErrNotFound):
		return Failure{Kind: Missing}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Failure{Kind: Canceled}
	}
	return Failure{Kind: Unknown}
}

// Error is a failed call to a store. Its text names the object, never a
// credential.
type Error struct {
	// Op is what was tried: "read", "write", "look for", "list".
	Op string
	// Object is the object's or lake's URL.
	Object string
	Kind   FailureKind
	// RetryAfter is the store's, zero if it gave none.
	RetryAfter time.Duration
	// Hint says what to do next; may be empty.
	Hint string
	// Err is the cause: ErrNotFound or ErrPrecondition for those kinds, else
	// what the store's own library said.
	Err error
}

func (e *Error) Error() string {
	s := e.Op + " " + e.Object + ": " + e.Err.Error()
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }
