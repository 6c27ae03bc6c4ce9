package streamer

import "github.com/tidemark-cdc/tidemark/internal/segment"

// Action is what is to be done about a segment, given what Temporal said when
// it was asked to start it.
type Action uint8

// The actions of Decide.
const (
	// Wait: the segment is started as proposed; wait for its result.
	Wait Action = iota
	// AdoptOpen: take over the recorded boundary, tell the run where the rows
	// are, wait for its result.
	AdoptOpen
	// AdoptFinished: take over the recorded boundary and mark it done; nothing
	// is uploaded.
	AdoptFinished
	// AdoptBroken: take over the recorded boundary first, then start it again
	// under the same ID.
	AdoptBroken
	// Again: what was recorded is gone; go back to the start.
	Again
	// Refuse: the record is not one that this pipeline can have made; stop.
	Refuse
)

// Decide says what to do with a proposed segment, given the record that Start
// returned. It is pure, so that the exhaustive model in the tests runs the very
// code that the streamer runs. The digest is not compared here, but after the
// rows up to the recorded boundary have come: see adopt.
func Decide(own segment.Ref, rec segment.Record) Action {
	if rec.Started {
		return Wait
	}
	if rec.State == segment.None {
		return Again
	}
	r := rec.Ref
	if r.Lake != own.Lake || r.SystemID != own.SystemID || r.Pipeline != own.Pipeline ||
		r.First != own.First || r.Follows != own.Follows || r.Validate() != nil {
		return Refuse
	}
	if !adopts {
		return Wait
	}
	switch rec.State {
	case segment.Completed:
		return AdoptFinished
	case segment.Broken:
		return AdoptBroken
	default:
		return AdoptOpen
	}
}
