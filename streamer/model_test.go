package streamer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// This is an exhaustive model of the dispatch: two streamers of one pipeline,
// each of which may believe that the slot is its own, Temporal, the lake and the
// ack, over a log of six changes. Every interleaving of their steps is visited:
// starts that arrive late, after their sender's death too; crashes at every
// step; restarts from the ack; runs that an operator terminates; completed
// workflows that Temporal forgets. What a streamer does with a reply is decided
// by Decide itself.
//
// Steps that nobody else can see are taken together with the one before, since
// they commute with everything that others do: a streamer takes a reply as soon
// as its start arrives (one that dies in between is one whose start arrives
// late), walks when it acknowledges, and begins again when it dies.

const (
	modelChanges = 6 // numbered from 1
	modelCut     = 3 // the most changes in a segment
)

// modelKind is what is known of the segment that begins at a change.
type modelKind uint8

const (
	unrecorded modelKind = iota
	running
	broken // its object may be in the lake all the same
	completed
	forgotten // past Temporal's retention: only the lake knows
)

func (k modelKind) inLake() bool { return k == completed || k == forgotten }

func (k modelKind) state() segment.State {
	return [...]segment.State{
		unrecorded: segment.None, running: segment.Running, broken: segment.Broken,
		completed: segment.Completed, forgotten: segment.None,
	}[k]
}

type modelRecord struct {
	kind modelKind
	rows uint8 // the recorded boundary; 0 if unrecorded
}

type modelStreamer struct {
	cut uint8 // the last change dispatched
	// sent is the rows of the segment whose start is on its way, else 0.
	sent uint8
	// A start that an earlier life sent and that has not arrived.
	lateFirst, lateRows uint8
}

type modelState struct {
	records   [modelChanges + 1]modelRecord
	ack       uint8
	streamers [2]modelStreamer
}

// key packs a state into 64 bits, never zero. The streamers are
// interchangeable, so a state and its mirror image have one key.
func (s *modelState) key() uint64 {
	k := uint64(1)
	for _, r := range s.records[1:] {
		v := uint64(0)
		if r.kind != unrecorded {
			v = 1 + uint64(r.kind-1)*modelCut + uint64(r.rows-1)
		}
		k = k<<4 | v
	}
	k = k<<3 | uint64(s.ack)
	var parts [2]uint64
	for i, p := range s.streamers {
		parts[i] = uint64(p.cut)<<7 | uint64(p.sent)<<5 | uint64(p.lateFirst)<<2 | uint64(p.lateRows)
	}
	return k<<20 | max(parts[0], parts[1])<<10 | min(parts[0], parts[1])
}

func modelStateOf(k uint64) (s modelState) {
	for i := range 2 {
		p := k >> (10 * i)
		s.streamers[1-i] = modelStreamer{uint8(p >> 7 & 7), uint8(p >> 5 & 3), uint8(p >> 2 & 7), uint8(p & 3)}
	}
	k >>= 20
	s.ack = uint8(k & 7)
	k >>= 3
	for i := modelChanges; i > 0; i-- {
		if v := k & 15; v > 0 {
			s.records[i] = modelRecord{modelKind((v-1)/modelCut) + 1, uint8((v-1)%modelCut) + 1}
		}
		k >>= 4
	}
	return s
}

// dispatchModel is the model with its rules, and the ways to break them.
type dispatchModel struct {
	ends [modelChanges + 1]bool // the change is the last of its transaction

	noAdoption      bool // an existing run is taken for the streamer's own
	startOverBroken bool // a start replaces a run that did not complete
	noLookup        bool // the lake is not asked for what Temporal forgot
	notInOrder      bool // the next start does not wait for the one before
	cutsAnywhere    bool // boundaries take no care of transactions
	naiveAck        bool // the ack is the end of the latest finished segment

	// actions is Decide, by the rows that are proposed, and what is recorded.
	actions [modelCut + 1][forgotten + 1][modelCut + 1]Action
}

func newDispatchModel(ends ...int) *dispatchModel {
	m := &dispatchModel{}
	for _, e := range ends {
		m.ends[e] = true
	}
	ref := func(rows int) segment.Ref {
		at := func(n int) change.Position { return change.Position{Timeline: 1, LSN: change.LSN(n)} }
		return segment.Ref{
			Pipeline: "p", SystemID: "1", Lake: "file:///lake",
			Follows: at(9), First: at(10), Last: at(9 + rows), Rows: int64(rows),
		}
	}
	for own := 1; own <= modelCut; own++ {
		m.actions[own][unrecorded][0] = Decide(ref(own), segment.Record{State: segment.Running, Ref: ref(own), Started: true})
		for k := running; k <= completed; k++ {
			for rows := 1; rows <= modelCut; rows++ {
				m.actions[own][k][rows] = Decide(ref(own), segment.Record{State: k.state(), Ref: ref(rows)})
			}
		}
	}
	return m
}

// mayEnd says whether the ring may propose rows changes from first on.
func (m *dispatchModel) mayEnd(first, rows int) bool {
	last := first + rows - 1
	if last > modelChanges {
		return false
	}
	if m.cutsAnywhere || m.ends[last] {
		return true
	}
	for i := first; i < last; i++ {
		if m.ends[i] {
			return false
		}
	}
	return true // inside a transaction that fills the segment alone
}

// start is what Temporal does when a start arrives, and what the streamer makes
// of the reply: the rows of its segment.
func (m *dispatchModel) start(s *modelState, first, own uint8) (rows uint8) {
	r := &s.records[first]
	action := m.actions[own][r.kind][r.rows]
	if r.kind.state() == segment.None || m.startOverBroken && r.kind == broken {
		*r = modelRecord{running, own}
		action = m.actions[own][unrecorded][0]
	}
	switch {
	case action == Wait || m.noAdoption:
		return own
	case action == AdoptOpen || action == AdoptFinished || action == AdoptBroken:
		return r.rows // a broken run is started again by a step of its own
	}
	return 0
}

// next calls emit with every state that one step leads to.
func (m *dispatchModel) next(s modelState, emit func(step string, n modelState)) {
	for i, p := range s.streamers {
		become := func(step string, f func(n *modelState, p *modelStreamer)) {
			n := s
			f(&n, &n.streamers[i])
			emit(step, n)
		}
		if p.lateFirst > 0 {
			become("a dead streamer's start arrives", func(n *modelState, p *modelStreamer) {
				m.start(n, p.lateFirst, p.lateRows)
				p.lateFirst, p.lateRows = 0, 0
			})
		}
		become("a streamer crashes and begins at the ack", func(_ *modelState, p *modelStreamer) {
			p.cut, p.sent = s.ack, 0
		})
		first := p.cut + 1
		switch {
		case p.sent > 0:
			become("a start arrives", func(n *modelState, p *modelStreamer) {
				p.cut += m.start(n, first, p.sent)
				p.sent = 0
			})
			become("a streamer crashes with its start on the way and begins at the ack", func(_ *modelState, p *modelStreamer) {
				*p = modelStreamer{cut: s.ack, lateFirst: first, lateRows: p.sent}
			})
		case first > modelChanges:
		case s.records[first].kind == forgotten && !m.noLookup:
			become("a streamer adopts an object", func(n *modelState, p *modelStreamer) { p.cut += n.records[first].rows })
		default:
			m.nextStarts(p, become)
		}
		if a := m.ackable(&s, p); a > s.ack {
			become("a streamer acknowledges", func(n *modelState, _ *modelStreamer) { n.ack = a })
		}
	}
	m.nextOfTemporal(s, emit)
}

func (m *dispatchModel) nextStarts(p modelStreamer, become func(string, func(*modelState, *modelStreamer))) {
	first := p.cut + 1
	for rows := uint8(1); rows <= modelCut; rows++ {
		if !m.mayEnd(int(first), int(rows)) {
			continue
		}
		become("a streamer sends a start", func(_ *modelState, p *modelStreamer) { p.sent = rows })
		if m.notInOrder && p.lateFirst == 0 {
			become("a streamer sends a start and goes on", func(_ *modelState, p *modelStreamer) {
				p.lateFirst, p.lateRows = first, rows
				p.cut += rows
			})
		}
	}
}

// ackable is the last transaction end that the streamer may acknowledge: it
// walks over what is completed up to its cut.
func (m *dispatchModel) ackable(s *modelState, p modelStreamer) uint8 {
	to := s.ack
	for f := s.ack + 1; f <= p.cut; {
		r := s.records[f]
		switch {
		case r.kind.inLake() && f+r.rows-1 <= p.cut:
			f += r.rows
			to = f - 1
		case m.naiveAck:
			f++
		default:
			f = modelChanges + 1
		}
	}
	for to > s.ack && !m.ends[to] {
		to--
	}
	return to
}

// nextOfTemporal are the steps of workers, operators and time.
func (m *dispatchModel) nextOfTemporal(s modelState, emit func(string, modelState)) {
	// One broken run at a time: what is done about one depends on no other.
	anyBroken := false
	for _, r := range s.records {
		anyBroken = anyBroken || r.kind == broken
	}
	for f := uint8(1); f <= modelChanges; f++ {
		n := s
		become := func(step string, k modelKind) {
			n.records[f].kind = k
			emit(step, n)
		}
		switch s.records[f].kind {
		case running:
			become("a run completes", completed)
			if !anyBroken {
				become("a run is terminated", broken)
			}
		case broken:
			become("a run is started again", running)
		case completed:
			if m.forget(&n, f) {
				become("Temporal forgets a run", forgotten)
			}
		}
	}
}

// forget makes ready for a run to be forgotten, if that can be: retention is at
// least a day, and a start is sent only by a streamer that has seen the slot to
// be its own within ten minutes. So no start of it is on its way by then, and a
// streamer that has not passed it by then begins later, and looks into the lake.
func (m *dispatchModel) forget(s *modelState, first uint8) bool {
	last := first + s.records[first].rows - 1
	for i := range s.streamers {
		p := &s.streamers[i]
		if p.lateFirst == first {
			return false
		}
		if p.cut < last {
			p.cut, p.sent = s.ack, 0
		}
	}
	return true
}

// wrong says which promise the step from before to s breaks.
func (m *dispatchModel) wrong(before, s *modelState) string {
	next, prefix := uint8(1), uint8(0)
	for f := uint8(1); f <= modelChanges; f++ {
		r, b := s.records[f], before.records[f]
		if b.kind != unrecorded && b.kind != running && b.rows != r.rows {
			return fmt.Sprintf("the lake may have an object of %d changes from %d on, and one of %d is recorded now", b.rows, f, r.rows)
		}
		if r.kind == unrecorded {
			continue
		}
		if f != next {
			return fmt.Sprintf("the segment recorded at %d is no link of the chain, which goes up to %d", f, next-1)
		}
		next += r.rows
		if r.kind.inLake() && prefix == f-1 {
			prefix = next - 1
		}
	}
	if s.ack > prefix {
		return fmt.Sprintf("the ack is %d, and the lake has a chain up to %d", s.ack, prefix)
	}
	return ""
}

// settle makes states one that differ in nothing that can still count: a late
// start that meets a record changes nothing; whether Temporal has forgotten what
// all have left behind, nobody will see.
func (m *dispatchModel) settle(s *modelState) {
	behind := s.ack
	for i := range s.streamers {
		p := &s.streamers[i]
		behind = min(behind, p.cut)
		if p.lateFirst > 0 && s.records[p.lateFirst].kind != unrecorded && !m.startOverBroken {
			p.lateFirst, p.lateRows = 0, 0
		}
	}
	for f := range behind {
		if r := &s.records[f+1]; r.kind == forgotten && f+r.rows <= behind {
			r.kind = completed
		}
	}
}

// explored is what explore found.
type explored struct {
	states    int
	steps     map[string]int // how often each was taken, in the first states
	violation string
	trace     []string
	finished  bool // a state was seen in which all is completed and acknowledged
}

// explore visits every state that can be reached, breadth first, up to the first
// that is wrong.
func (m *dispatchModel) explore() explored {
	var start modelState
	x := explored{steps: map[string]int{}}
	queue := []uint64{start.key()}
	parent := []uint32{0}
	seen := newKeySet()
	seen.add(start.key())
	for at := 0; at < len(queue) && x.violation == ""; at++ {
		s := modelStateOf(queue[at])
		x.finished = x.finished || s.ack == modelChanges
		m.next(s, func(step string, n modelState) {
			if at < 100_000 {
				x.steps[step]++
			}
			m.settle(&n)
			k := n.key()
			if x.violation != "" || !seen.add(k) {
				return
			}
			queue = append(queue, k)
			parent = append(parent, uint32(at))
			if x.violation = m.wrong(&s, &n); x.violation != "" {
				x.trace = m.trace(queue, parent, len(queue)-1)
			}
		})
	}
	x.states = len(queue)
	return x
}

// trace names the steps to queue[at].
func (m *dispatchModel) trace(queue []uint64, parent []uint32, at int) (steps []string) {
	for at > 0 {
		from := int(parent[at])
		name := ""
		m.next(modelStateOf(queue[from]), func(step string, n modelState) {
			if m.settle(&n); n.key() == queue[at] {
				name = step
			}
		})
		steps = append([]string{name}, steps...)
		at = from
	}
	return steps
}

// keySet is a set of keys, none of which is zero.
type keySet struct {
	keys []uint64
	n    int
}

func newKeySet() *keySet { return &keySet{keys: make([]uint64, 1<<16)} }

// add says whether k is new.
func (s *keySet) add(k uint64) bool {
	if 2*s.n >= len(s.keys) {
		old := s.keys
		s.keys, s.n = make([]uint64, 2*len(old)), 0
		for _, o := range old {
			if o != 0 {
				s.add(o)
			}
		}
	}
	for i := k * 0x9E3779B97F4A7C15 >> 20; ; i++ {
		switch p := &s.keys[i&uint64(len(s.keys)-1)]; *p {
		case 0:
			*p = k
			s.n++
			return true
		case k:
			return false
		}
	}
}

// TestTwoStreamersLeaveNoGapAndNoOverlap visits every interleaving.
func TestTwoStreamersLeaveNoGapAndNoOverlap(t *testing.T) {
	// A transaction that fills segments alone, behind and before small ones.
	x := newDispatchModel(1, 5, 6).explore()
	t.Logf("%d states", x.states)
	if x.violation != "" {
		t.Fatalf("%s, after:\n%s", x.violation, strings.Join(x.trace, "\n"))
	}
	if !x.finished {
		t.Error("no interleaving reaches the end: the model does not move")
	}
	for _, step := range []string{
		"a dead streamer's start arrives", "a streamer adopts an object", "a run is started again",
		"Temporal forgets a run", "a streamer acknowledges",
	} {
		if x.steps[step] == 0 {
			t.Errorf("no interleaving has the step %q", step)
		}
	}
}

// TestModelSeesWhatBrokenRulesDo: each rule is needed, and its loss is found.
func TestModelSeesWhatBrokenRulesDo(t *testing.T) {
	for name, breakRule := range map[string]func(*dispatchModel){
		"no adoption":                      func(m *dispatchModel) { m.noAdoption = true },
		"a start replaces a broken run":    func(m *dispatchModel) { m.startOverBroken = true },
		"the lake is not asked":            func(m *dispatchModel) { m.noLookup = true },
		"starts do not wait for a reply":   func(m *dispatchModel) { m.notInOrder = true },
		"cuts inside small transactions":   func(m *dispatchModel) { m.cutsAnywhere = true },
		"the ack is the latest finished's": func(m *dispatchModel) { m.naiveAck = true },
	} {
		t.Run(name, func(t *testing.T) {
			m := newDispatchModel(1, 5, 6)
			breakRule(m)
			x := m.explore()
			if x.violation == "" {
				t.Fatalf("nothing wrong was found in %d states", x.states)
			}
			t.Logf("%d states: %s, after:\n%s", x.states, x.violation, strings.Join(x.trace, "\n"))
		})
	}
}
