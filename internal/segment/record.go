package segment

import (
	"slices"
	"time"
)

// State is what Temporal knows of a segment.
type State string

// The states of a Record.
const (
	// None: no workflow with the segment's ID is known.
	None State = "none"
	// Running: the workflow is open, whatever it is waiting for.
	Running State = "running"
	// Completed: the object is in the lake (or the segment in quarantine).
	Completed State = "completed"
	// Broken: the workflow closed without completing: failed, terminated,
	// timed out or canceled.
	Broken State = "broken"
)

// Record is a segment as Temporal has recorded it.
type Record struct {
	State State
	// RunID is the run that State speaks of. Empty with None.
	RunID string
	// Since is when that run began, by Temporal's clock; zero if it was not asked.
	Since time.Time
	// Ref is the recorded reference: boundary, digest, lake. Zero with None.
	Ref Ref
	// Started says that the very call that returned this Record started the
	// workflow, so that Ref is the caller's own.
	Started bool
	// Reason says how a Broken run ended, in Temporal's words.
	Reason string
	// GivenUp says that a Broken run was terminated for good, with GivenUpReason:
	// its boundary binds nobody any more.
	GivenUp bool
}

// GivenUpReason begins the reason with which a segment is terminated that can
// never be finished. Records carry it: it never changes.
const GivenUpReason = "given up by tidemark: "

// Sort puts records in stream order.
func Sort(records []Record) {
	slices.SortFunc(records, func(a, b Record) int { return a.Ref.First.Compare(b.Ref.First) })
}
