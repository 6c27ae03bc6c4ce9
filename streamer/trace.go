package streamer

import (
	"strings"
	"sync"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer/ring"
)

// Tracer is told of each segment's way through the streamer, for traces. Traced
// is called from many goroutines at once and returns without waiting for
// anything.
type Tracer interface {
	Traced(Step)
}

// Step is a part of a segment's way that is behind it.
type Step struct {
	Name StepName
	// Ref is the segment's; that of an adopted one as it was recorded.
	Ref      segment.Ref
	From, To time.Time
	// Adopted says how the segment's boundary was found recorded; empty for one
	// that this process began.
	Adopted Adoption
	// Run is the workflow's run that StepRun is about, and Ended how it ended.
	Run, Ended string
}

// StepName names a Step.
type StepName string

// The steps of a segment.
const (
	// StepSegment is all of it: from when its first change was received, or the
	// workflow of an adopted one began, until StepAck is over.
	StepSegment StepName = "segment"
	// StepDispatch is from the cut until its boundary is on record in Temporal and
	// its upload under way; for one that is finished, until its rows have come
	// again.
	StepDispatch StepName = "dispatch"
	// StepRun is a run of its workflow that has ended without completing.
	StepRun StepName = "workflow"
	// StepWalk is from when it was seen to have completed until everything before
	// it had, too.
	StepWalk StepName = "walk"
	// StepAck is from then until an ack that covers it is on record in the lake,
	// and so may be told to Postgres. In the middle of a transaction that takes
	// until its end.
	StepAck StepName = "ack"
)

// Adoption says how a recorded boundary was found.
type Adoption string

// The ways in which a segment is adopted.
const (
	AdoptedObject   Adoption = "object"   // in the lake
	AdoptedOpen     Adoption = "open"     // its workflow runs
	AdoptedFinished Adoption = "finished" // its workflow has completed
	AdoptedBroken   Adoption = "broken"   // its workflow has ended otherwise
)

// adoptions are the actions by which a recorded boundary is taken over.
var adoptions = map[Action]Adoption{AdoptOpen: AdoptedOpen, AdoptFinished: AdoptedFinished, AdoptBroken: AdoptedBroken}

// maxWays bounds the segments that are followed at once. So many are only there
// while a single transaction of thousands of segments goes on, whose end they
// wait for.
const maxWays = 4096

// traces follows segments from the cut to the ack. Those that the end of a life
// finds on their way are not told of: the next life adopts them, and tells of
// all of it. A nil *traces follows none.
type traces struct {
	tracer Tracer
	// inHand is what is being dispatched. Only the dispatcher touches it.
	inHand way

	mu sync.Mutex
	// ways are those of the segments that are dispatched and not acknowledged, in
	// stream order.
	ways []*way
}

// way is how far a segment has come, and when.
type way struct {
	ref     segment.Ref
	adopted Adoption
	run     string
	// received and cut are when its first change was received, and when it was
	// cut; runs when run began. The others are zero until then.
	received, cut, runs, finished, walked time.Time
}

func newTraces(t Tracer) *traces {
	if t == nil {
		return nil
	}
	return &traces{tracer: t}
}

// begin is called when v has been cut.
func (t *traces) begin(v ring.View) {
	if t == nil {
		return
	}
	t.inHand = way{cut: time.Now()}
	t.inHand.received = t.inHand.cut
	if c := firstOf(v); c != nil {
		t.inHand.received = c.Received.UTC()
	}
}

// adopting is called when what begins there turns out to be recorded.
func (t *traces) adopting(how Adoption, rec segment.Record) {
	if t == nil {
		return
	}
	t.inHand.adopted = how
	if how == AdoptedBroken {
		w := way{ref: rec.Ref, adopted: how, run: rec.RunID, runs: rec.Since}
		t.ended(&w, rec)
	}
	if !rec.Since.IsZero() && rec.Since.Before(t.inHand.received) {
		t.inHand.received = rec.Since
	}
}

// dispatched is called when ref's boundary is taken. run is the open run of its
// workflow; empty for a segment that is finished.
func (t *traces) dispatched(ref segment.Ref, run string) {
	if t == nil {
		return
	}
	w := t.inHand
	w.ref, w.run, w.runs = ref, run, time.Now()
	t.tell(&w, StepDispatch, w.cut, w.runs)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.ways) == maxWays {
		t.pop()
	}
	t.ways = append(t.ways, &w)
}

// awaited is called with what a segment's run has come to.
func (t *traces) awaited(first change.Position, now segment.Record) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.at(first)
	if w == nil || w.run == "" || now.RunID == w.run && (now.State == segment.Completed || now.State == segment.Running) {
		return
	}
	t.ended(w, now)
}

// ended tells of a run that has not completed; now is what has become of it.
func (t *traces) ended(w *way, now segment.Record) {
	to := time.Now()
	step := w.step(StepRun, w.runs, to)
	if w.runs.IsZero() {
		step.From = to
	}
	step.Run = w.run
	switch now.State {
	case segment.None:
		step.Ended = endingForgotten
	case segment.Broken:
		// What follows is what somebody has written.
		step.Ended, _, _ = strings.Cut(now.Reason, ":")
	}
	if step.Ended == "" {
		step.Ended = endingClosed
	}
	t.tracer.Traced(step)
}

// runs is called with the run that a segment has now.
func (t *traces) runs(first change.Position, rec segment.Record) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.at(first); w != nil && w.run != rec.RunID {
		w.run, w.runs = rec.RunID, time.Now()
	}
}

// finished is called when a segment has completed. It walks as the ring does.
func (t *traces) finished(first change.Position) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if w := t.at(first); w != nil {
		w.finished = now
	}
	for _, w := range t.ways {
		if w.finished.IsZero() {
			return
		}
		if w.walked.IsZero() {
			w.walked = now
			t.tell(w, StepWalk, w.finished, now)
		}
	}
}

// acknowledged is called when the lake has on record that everything up to last
// is done.
func (t *traces) acknowledged(last change.Position) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.ways) > 0 && !last.Less(t.ways[0].ref.Last) {
		if w := t.ways[0]; !w.walked.IsZero() {
			t.tell(w, StepAck, w.walked, time.Now())
		}
		t.pop()
	}
}

// pop ends the way of the first segment; t.mu is held.
func (t *traces) pop() {
	w := t.ways[0]
	t.ways[0] = nil
	t.ways = t.ways[1:]
	t.tell(w, StepSegment, w.received, time.Now())
}

// at is the way of the segment that begins at first, nil for none; t.mu is held.
func (t *traces) at(first change.Position) *way {
	for _, w := range t.ways {
		if w.ref.First == first {
			return w
		}
	}
	return nil
}

func (t *traces) tell(w *way, name StepName, from, to time.Time) {
	t.tracer.Traced(w.step(name, from, to))
}

func (w *way) step(name StepName, from, to time.Time) Step {
	return Step{Name: name, Ref: w.ref, From: from, To: to, Adopted: w.adopted}
}

// firstOf is the first change of v; nil if it has none.
func firstOf(v ring.View) *change.Change {
	for chunk := range v.Chunks() {
		if len(chunk) > 0 {
			return &chunk[0]
		}
	}
	return nil
}
