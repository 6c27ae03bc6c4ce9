package ops

import "time"

// Snapshot is what the status page of a streamer shows at one moment. Texts are
// for people and never hold a row or a secret; the page takes none of them for
// markup.
type Snapshot struct {
	At       time.Time `json:"at"`
	Pipeline string    `json:"pipeline"`
	Verb     string    `json:"verb"`
	Version  string    `json:"version"`
	// Ready and Reasons are those of /readyz.
	Ready   bool     `json:"ready"`
	Reasons []string `json:"reasons"`
	Ack     Ack      `json:"ack"`
	// Figures are shown as they are, in this order.
	Figures  []Figure  `json:"figures"`
	Ring     Ring      `json:"ring"`
	Segments Segments  `json:"segments"`
	Findings []Finding `json:"findings"`
}

// Level says how much something matters.
type Level string

// The levels.
const (
	LevelOK      Level = "ok"
	LevelNote    Level = "note"
	LevelWarning Level = "warning"
	LevelError   Level = "error"
)

// Ack says what holds the ack and since when (What), and why (Why; empty where
// What says all there is). Both stay as they are while nothing happens, since
// they are read out when they change.
type Ack struct {
	Level Level  `json:"level"`
	What  string `json:"what"`
	Why   string `json:"why,omitempty"`
}

// Figure is one number with its name.
type Figure struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Note  string `json:"note,omitempty"`
}

// Ring is the ring with its four ranges. Bytes count an overhead for each
// change; those of Dispatched, Waiting and Free share the ring.
type Ring struct {
	// Done counts the changes that have left the ring.
	Done       uint64 `json:"done"`
	Dispatched Range  `json:"dispatched"`
	// Finished is the part of Dispatched that is finished behind a segment that
	// is not.
	Finished Range `json:"finished"`
	Waiting  Range `json:"waiting"`
	Free     int64 `json:"free"`
	// Full says that a change waits for room, and so nothing is read.
	Full bool `json:"full"`
}

// Range is an amount of changes.
type Range struct {
	Changes int   `json:"changes"`
	Bytes   int64 `json:"bytes"`
}

// MaxSegments bounds the segments that a Snapshot shows.
const MaxSegments = 200

// Segments are those that are dispatched, in stream order, finished ones behind
// one that is not among them.
type Segments struct {
	// Shown are the first of them, at most MaxSegments.
	Shown []Segment `json:"shown"`
	// MoreRunning and MoreFinished count the others.
	MoreRunning  int `json:"more_running"`
	MoreFinished int `json:"more_finished"`
}

// State is how a dispatched segment stands.
type State string

// The states.
const (
	// Running: its first attempt is under way or to come.
	Running State = "running"
	// Retrying: an attempt has failed, and another follows by itself.
	Retrying State = "retrying"
	// Waiting: it waits for a person.
	Waiting State = "waiting"
	// Broken: its workflow was closed, and the streamer starts it again.
	Broken State = "broken"
	// Finished: it is in the lake, behind one that is not.
	Finished State = "finished"
)

// Segment is a dispatched segment.
type Segment struct {
	First    string `json:"first"`
	FirstLSN string `json:"first_lsn"`
	LastLSN  string `json:"last_lsn"`
	Tables   string `json:"tables,omitempty"`
	Rows     int64  `json:"rows"`
	Bytes    int64  `json:"bytes"`
	// Since is when it was dispatched or adopted, Finished when it was seen to be
	// in the lake.
	Since    time.Time `json:"since"`
	Finished time.Time `json:"finished,omitzero"`
	State    State     `json:"state"`
	// Doing says in words what is being done or waited for; Attempt is the number
	// of the attempt that is under way or next, zero if that is not known.
	Doing   string `json:"doing,omitempty"`
	Attempt int32  `json:"attempt,omitempty"`
	// Error is why the last attempt that has ended has failed.
	Error string `json:"error,omitempty"`
	// Workflow is its ID, Link its page in Temporal's UI; empty without one.
	Workflow string `json:"workflow"`
	Link     string `json:"link,omitempty"`
	// Holds says that it holds the ack.
	Holds bool `json:"holds,omitempty"`
}

// Finding is what was found of the surroundings: by the preflight, or since.
type Finding struct {
	Level Level `json:"level"`
	// Source is who found it: preflight, drift or WAL.
	Source string    `json:"source"`
	About  string    `json:"about,omitempty"`
	What   string    `json:"what"`
	Fix    string    `json:"fix,omitempty"`
	Since  time.Time `json:"since,omitzero"`
}
