package activities

import (
	"github.com/tidemark-cdc/tidemark/internal/ahead"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// The names under which a worker registers the activities. Recorded histories
// carry them: they never change.
const (
	UploadName     = "Upload"
	QuarantineName = "Quarantine"
	ReplayName     = "Replay"
)

// Version is the version of the inputs and results below that this package
// writes, and the greatest one that it understands. A field that may be ignored
// by an older worker does not raise it.
const Version = 1 + ahead.Versions

// UploadInput asks for one segment's object. It carries no row and no secret.
type UploadInput struct {
	Version int              `json:"version"`
	Ref     segment.Ref      `json:"ref"`
	Source  segment.Location `json:"source"`
	// Again says that the segment was scheduled before, so that an earlier
	// attempt may have stored the object: it is looked for before anything else.
	Again bool `json:"again,omitempty"`
}

// UploadResult says what is in the lake now.
type UploadResult struct {
	Version int      `json:"version"`
	Objects []Object `json:"objects"`
	// Existed says that an earlier attempt had stored the object.
	Existed bool `json:"existed,omitempty"`
	// Quarantined says that Objects are raw messages below _quarantine/.
	Quarantined bool `json:"quarantined,omitempty"`
}

// Object is one file of the lake.
type Object struct {
	// Key stands below the lake's prefix.
	Key   string `json:"key"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
}

// QuarantineInput asks for one segment's raw messages to be put aside.
type QuarantineInput = UploadInput

// ReplayInput asks for a quarantined segment to be decoded again.
type ReplayInput struct {
	Version int         `json:"version"`
	Ref     segment.Ref `json:"ref"`
}

// Progress is what a heartbeat reports; Temporal shows the last one with the
// pending attempt.
type Progress struct {
	Step  Step  `json:"step"`
	Rows  int64 `json:"rows"`
	Bytes int64 `json:"bytes"`
}

// Step is what an attempt is doing.
type Step string

// The steps of an attempt, in their order.
const (
	StepLook   Step = "look for the object"
	StepWait   Step = "wait for memory"
	StepFetch  Step = "fetch"
	StepEncode Step = "encode"
	StepStore  Step = "store"
)
