package ring

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// transaction is one of the upstream log. A non-transactional message is one
// with a single change.
type transaction struct {
	lsn, end change.LSN
	changes  []change.Change
}

// world is a ring, its model, and a Postgres and a Temporal around them that do
// everything that real ones may do. Every choice comes from draw.
type world struct {
	draw func(label string, lo, hi int) int
	fail func(format string, args ...any)

	cfg   Config
	scale int
	ring  *Ring
	model *model
	now   change.Time

	log []transaction
	// The next thing to come on the connection is log[tx].changes[ch], or the
	// end of that transaction.
	tx, ch int
	// sent is what the server may report in a keepalive.
	sent change.LSN

	inFlight []SegmentID // unfinished ones, without an open one
	views    map[SegmentID]View
	held     *View // a proposal that waits for its confirmation
	adopting *adoption
	settling bool // nothing new begins
	// exempt: the bound is exceeded by what Admit is allowed to let in.
	exempt bool
	// ack is what is reported; the naive test has another.
	ack  func() Ack
	prev Ack
	done map[change.Position]bool
}

// adoption is the boundary of a segment that an earlier process recorded.
type adoption struct {
	last     change.Position
	finished bool
	id       SegmentID
}

func newWorld(draw func(string, int, int) int, fail func(string, ...any)) *world {
	w := &world{draw: draw, fail: fail, now: 1e15, scale: 1, views: map[SegmentID]View{}, done: map[change.Position]bool{}}
	rows := 6
	switch draw("kind of world", 0, 9) {
	case 0: // changes of hundreds of kilobytes, so that pages end by bytes
		w.scale = 9000
	case 1: // segments over several pages
		rows = 250
	}
	w.cfg = Config{
		MaxBytes:     int64(draw("ring", 1, 5*rows)) * (Overhead + 20*int64(w.scale)),
		SegmentRows:  draw("segment rows", 1, rows),
		SegmentBytes: int64(draw("segment bytes", 10, 40*rows)) * int64(w.scale),
		MaxAge:       10 * time.Second,
	}
	if draw("count bound", 0, 3) == 0 {
		w.cfg.MaxChanges = draw("ring changes", 1, 3*rows)
	}
	// Some of the log is done already.
	var start Start
	for range draw("done before", 0, 2) {
		w.extendLog()
		t := w.log[len(w.log)-1]
		start.Ack = t.end
		for _, c := range t.changes {
			start.Last, start.Time = c.Position, c.CommitTime
			w.done[c.Position] = true
		}
	}
	w.ring, w.model = New(w.cfg, start), newModel(w.cfg, start)
	w.ack = w.ring.Ack
	w.prev = w.ack()
	return w
}

// extendLog lets Postgres commit another transaction.
func (w *world) extendLog() {
	prev := transaction{end: 1000}
	p := change.Position{Timeline: 1}
	day := 100
	if n := len(w.log); n > 0 {
		prev = w.log[n-1]
	}
	for _, t := range slices.Backward(w.log) {
		if len(t.changes) > 0 {
			p = t.changes[0].Position
			day = int(t.changes[0].CommitTime.Day())
			break
		}
	}
	// The commit record often begins where the one before ended.
	t := transaction{lsn: prev.end + change.LSN(8*w.draw("gap", 0, 2))}
	t.end = t.lsn + 8
	if w.draw("day change", 0, 7) == 0 {
		day += w.draw("days", -1, 1)
	}
	if w.draw("failover", 0, 15) == 0 {
		p.Timeline++
	}
	p.LSN = t.lsn
	n := w.draw("changes", 0, 5)
	switch w.draw("sort of transaction", 0, 9) {
	case 0:
		n = w.draw("many changes", 6, 2*w.cfg.SegmentRows+10)
	case 1:
		n, t.end = 1, t.lsn+1 // a non-transactional message
	}
	filtered, joined := 0, 0
	var shared []byte
	for i := range n {
		if w.draw("filtered", 0, 9) == 0 {
			filtered++
		}
		p.Ordinal = uint64(i + filtered)
		c := change.Change{
			Position: p, LSN: t.lsn - 1, XID: uint32(len(w.log)), Operation: change.Insert,
			CommitTime: change.Time(day) * 24 * 3600 * 1e6,
		}
		if joined == 0 && w.draw("truncate", 0, 11) == 0 {
			joined = min(w.draw("tables", 2, 9), n-i)
			shared = nil
		}
		if joined > 0 && shared != nil {
			c.Raw = shared
		} else {
			size := w.draw("size", 0, 30)
			if w.draw("large", 0, 19) == 0 {
				size = w.draw("size", 30, 300)
			}
			c.Raw = bytes.Repeat([]byte{byte(len(w.log)*16 + i)}, size*w.scale)
		}
		if joined > 0 {
			shared = c.Raw
			joined--
			c.Operation, c.Joined = change.Truncate, joined > 0
		}
		t.changes = append(t.changes, c)
	}
	w.log = append(w.log, t)
}

// receive takes the next thing from the connection; false if there is no room.
func (w *world) receive() bool {
	if w.tx == len(w.log) {
		w.extendLog()
	}
	t := &w.log[w.tx]
	if w.ch == len(t.changes) {
		before := w.ring.Ack()
		moved := w.ring.Mark(t.end)
		w.model.mark(t.end)
		w.checkMoved("mark", before, moved)
		w.sent = t.end
		w.tx, w.ch = w.tx+1, 0
		return true
	}
	c := t.changes[w.ch]
	c.Received = w.now
	if w.ring.LastReceived().Less(c.Position) {
		strict := w.strictlyFits(len(c.Raw))
		ok := w.ring.Admit(len(c.Raw))
		if want := w.model.admit(len(c.Raw)); ok != want {
			w.fail("admit %d bytes: %v, want %v", len(c.Raw), ok, want)
		}
		if !ok {
			return false
		}
		w.exempt = w.exempt || !strict
	}
	// The connection's buffer is overwritten by the next message.
	scratch := append([]byte(nil), c.Raw...)
	in := c
	in.Raw = scratch
	added, err := w.ring.Add(&in)
	clear(scratch)
	if err != nil {
		w.fail("add: %v", err)
	}
	if want := w.model.add(c); added != want {
		w.fail("add %s: %v, want %v", c.Position, added, want)
	}
	w.ch++
	return true
}

// strictlyFits is the bound without any of its exceptions.
func (w *world) strictlyFits(raw int) bool {
	h := w.model.held()
	return h.Bytes+int64(raw)+Overhead <= w.cfg.MaxBytes && (w.cfg.MaxChanges == 0 || h.Changes < w.cfg.MaxChanges)
}

func (w *world) reconnect() {
	w.tx = max(0, w.tx-w.draw("transactions back", 0, 4))
	w.ch = 0
	w.sent = 0
	if w.tx > 0 {
		w.sent = w.log[w.tx-1].end
	}
}

func (w *world) keepalive() {
	if w.tx == len(w.log) {
		w.extendLog()
	}
	end := w.sent + change.LSN(w.draw("idle WAL", 0, int(w.log[w.tx].lsn-w.sent)))
	before := w.ring.Ack()
	moved := w.ring.Keepalive(end)
	w.model.keepalive(end)
	w.checkMoved("keepalive", before, moved)
}

func (w *world) checkMoved(what string, before Ack, moved bool) {
	if want := w.ring.Ack() != before; moved != want {
		w.fail("%s says that the ack moved: %v, want %v", what, moved, want)
	}
}

// dispatch does the next thing that the dispatch would do.
func (w *world) dispatch(drain bool) (progress bool) {
	if w.adopting != nil {
		return w.adopt()
	}
	v, ok := w.propose(drain)
	if w.held != nil {
		// The start of an earlier proposal is confirmed now.
		v, ok = *w.held, true
		w.held = nil
	}
	if !ok {
		return false
	}
	says := w.draw("Temporal says", 0, 9)
	switch {
	case w.settling || says > 3:
		w.cut(v)
		return true
	case says == 0:
		w.held = &v
		return true
	}
	w.beginAdoption(v)
	return w.adopt()
}

func (w *world) cut(v View) {
	id, err := w.ring.Cut(v)
	if err != nil {
		w.fail("cut: %v", err)
	}
	w.checkView(v)
	w.model.segs = append(w.model.segs, modelSegment{from: int(v.From), to: int(v.To)})
	w.model.cut = int(v.To)
	w.inFlight = append(w.inFlight, id)
	w.views[id] = v
}

// beginAdoption finds a boundary that an earlier process can have recorded for
// the segment that begins at v, from another proposal than ours.
func (w *world) beginAdoption(v View) {
	var ends []change.Position
	for len(ends) == 0 || w.draw("one more transaction", 0, 2) > 0 && len(w.log) < w.tx+20 {
		w.extendLog()
		ends = w.possibleEnds(v)
	}
	w.adopting = &adoption{
		last:     ends[w.draw("recorded end", 0, len(ends)-1)],
		finished: w.draw("finished", 0, 1) == 1,
	}
	if w.adopting.finished {
		id, err := w.ring.Open()
		if err != nil {
			w.fail("open: %v", err)
		}
		w.adopting.id = id
		w.model.segs = append(w.model.segs, modelSegment{from: w.model.cut, to: w.model.cut, extended: true, open: true})
	}
}

func (w *world) possibleEnds(v View) (ends []change.Position) {
	for _, t := range w.log {
		for _, c := range t.changes {
			if c.Position.Less(v.First) {
				continue
			}
			if c.CommitTime.Day() != v.Day || c.Position.Timeline != v.First.Timeline {
				return ends
			}
			if !c.Joined {
				ends = append(ends, c.Position)
			}
		}
	}
	return ends
}

func (w *world) adopt() (progress bool) {
	a := w.adopting
	v, reached, beyond := w.ring.Waiting(a.last)
	to, wantReached, wantBeyond := w.model.waiting(a.last)
	if int(v.To) != to || reached != wantReached || beyond != wantBeyond {
		w.fail("waiting for %s: to %d, reached %v, beyond %v; want %d, %v, %v", a.last, v.To, reached, beyond, to, wantReached, wantBeyond)
	}
	w.checkView(v)
	if beyond {
		w.fail("waiting for %s: the stream is beyond it", a.last)
	}
	w.lift(!reached)
	switch {
	case !a.finished && reached:
		w.cut(v)
		w.adopting = nil
		return true
	case !a.finished:
		return false
	}
	if v.Rows > 0 {
		if err := w.ring.Extend(a.id, v); err != nil {
			w.fail("extend: %v", err)
		}
		w.model.segs[a.id-1].to = to
		w.model.cut = to
		w.views[a.id] = v // the last piece of it
	}
	if reached {
		w.finishSegment(a.id)
		w.adopting = nil
	}
	return v.Rows > 0
}

func (w *world) lift(on bool) {
	w.ring.Lift(on)
	w.model.lifted = on
}

func (w *world) finish() bool {
	if len(w.inFlight) == 0 {
		return false
	}
	i := w.draw("which", 0, len(w.inFlight)-1)
	id := w.inFlight[i]
	w.inFlight = slices.Delete(w.inFlight, i, i+1)
	w.finishSegment(id)
	return true
}

func (w *world) finishSegment(id SegmentID) {
	before := w.ring.Ack()
	moved := w.ring.Finish(id)
	s := &w.model.segs[id-1]
	s.finished, s.open = true, false
	for _, c := range w.model.entries[s.from:s.to] {
		w.done[c.Position] = true
	}
	w.checkMoved("finish", before, moved)
	if w.ring.Finish(id) {
		w.fail("finishing segment %d again moved the ack", id)
	}
	// The upload that was given up is still reading.
	w.checkView(w.views[id])
	delete(w.views, id)
}

// step does one thing, and then checks everything.
func (w *world) step() {
	switch w.draw("step", 0, 9) {
	case 0, 1, 2, 3:
		for range w.draw("burst", 1, 2*w.cfg.SegmentRows+2) {
			if !w.receive() {
				break
			}
		}
	case 4, 5:
		w.dispatch(w.draw("drain", 0, 4) == 0)
	case 6, 7:
		w.finish()
	case 8:
		w.keepalive()
	case 9:
		w.now += change.Time(w.draw("seconds", -3, 6)) * 1e6
		if w.draw("break", 0, 2) == 0 {
			w.reconnect()
		}
	}
	w.check()
}

// settle lets everything come to its end.
func (w *world) settle() {
	w.settling = true
	for limit := 0; ; limit++ {
		progress := false
		for w.tx < len(w.log) && w.receive() {
			progress = true
		}
		progress = w.dispatch(true) || progress
		progress = w.finish() || progress
		w.check()
		if w.tx == len(w.log) && !progress && w.adopting == nil && w.held == nil {
			break
		}
		if limit > 10*w.changes()+1000 {
			w.fail("does not settle: %+v", w.ring.Stats())
		}
	}
	if got, want := w.ack(), (Ack{w.model.greatest(), w.model.last, w.model.lastTime}); got != want {
		w.fail("everything is finished and the ack is %v, want %v", got, want)
	}
	if s := w.ring.Stats(); s.Dispatched != (Usage{}) || s.Waiting != (Usage{}) || s.Segments != 0 || s.Read != s.Write {
		w.fail("everything is finished and the ring holds %+v", s)
	}
	if w.ring.pages.len() > 1 || w.ring.marks.len() > 0 || w.ring.breaks.len() > 1 {
		w.fail("an empty ring keeps %d pages, %d markers, %d day changes", w.ring.pages.len(), w.ring.marks.len(), w.ring.breaks.len())
	}
}

func (w *world) changes() (n int) {
	for _, t := range w.log {
		n += len(t.changes) + 1
	}
	return n
}

// checkAck is P1, as Postgres sees it: what is acknowledged is in the lake.
func checkAck(log []transaction, a Ack, done map[change.Position]bool) error {
	for _, t := range log {
		for i, c := range t.changes {
			if t.end <= a.LSN && !done[c.Position] {
				return fmt.Errorf("the ack %d is past the end %d of a transaction whose change %s is not finished", a.LSN, t.end, c.Position)
			}
			if !a.Last.Less(c.Position) && !done[c.Position] {
				return fmt.Errorf("the ack's last position is %s, and %s is not finished", a.Last, c.Position)
			}
			if c.Position == a.Last && i+1 < len(t.changes) {
				return fmt.Errorf("the ack's last position %s is in the middle of a transaction", a.Last)
			}
		}
	}
	return nil
}

func (w *world) check() {
	if err := checkAck(w.log, w.ack(), w.done); err != nil {
		w.fail("%v", err)
	}
	if a := w.ack(); a.LSN < w.prev.LSN || a.Last.Less(w.prev.Last) {
		w.fail("the ack went back from %v to %v", w.prev, a)
	}
	w.prev = w.ack()
	if got, want := w.ring.Ack(), w.model.ack(); got != want {
		w.fail("ack %v, want %v", got, want)
	}
	if got, want := w.ring.LastReceived(), w.model.last; got != want {
		w.fail("last received %s, want %s", got, want)
	}
	got, want := w.ring.Stats(), w.model.stats()
	want.Free, want.Peak = got.Free, got.Peak
	if got != want {
		w.fail("stats\n%+v, want\n%+v", got, want)
	}
	held := w.model.held()
	over := held.Bytes > w.cfg.MaxBytes || w.cfg.MaxChanges > 0 && held.Changes > w.cfg.MaxChanges
	if over && !w.exempt && held.Changes > 1 {
		w.fail("the ring holds %+v, more than %d bytes or %d changes", held, w.cfg.MaxBytes, w.cfg.MaxChanges)
	}
	w.exempt = w.exempt && over
	if w.adopting == nil || !w.adopting.finished {
		w.propose(true)
		w.propose(false)
	}
	gotDue, gotOK := w.ring.NextDue(w.now)
	wantDue, wantOK := w.model.nextDue(w.now)
	if gotDue != wantDue || gotOK != wantOK {
		w.fail("next due %v, %v, want %v, %v", gotDue, gotOK, wantDue, wantOK)
	}
}

// propose compares with the model, and checks what every segment must be.
func (w *world) propose(drain bool) (View, bool) {
	v, ok := w.ring.Propose(w.now, drain)
	if want := w.model.propose(w.now, drain); ok != (want > 0) || ok && int(v.To) != want {
		w.fail("propose: %v to %d, want %d", ok, v.To, want)
	}
	if !ok {
		return v, false
	}
	in := w.model.entries[v.From:v.To]
	last := in[len(in)-1]
	if last.Joined {
		w.fail("a truncate is cut after %s", last.Position)
	}
	for _, c := range in {
		if c.CommitTime.Day() != v.Day || c.Position.Timeline != v.First.Timeline {
			w.fail("segment %s mixes days or timelines", v.First)
		}
	}
	end := false
	for _, t := range w.log {
		end = end || len(t.changes) > 0 && t.changes[len(t.changes)-1].Position == last.Position
	}
	if !end && in[0].Position.LSN != last.Position.LSN {
		w.fail("segment %s ends inside a transaction that it does not consist of", v.First)
	}
	return v, true
}

// checkView compares a View, whenever it is looked at, with what went in.
func (w *world) checkView(v View) {
	want := w.model.entries[v.From:v.To]
	n, sum := 0, int64(0)
	for chunk := range v.Chunks() {
		for _, c := range chunk {
			o := want[n]
			sum += int64(len(c.Raw))
			if !bytes.Equal(c.Raw, o.Raw) {
				w.fail("change %s in view [%d, %d): its bytes have changed", o.Position, v.From, v.To)
			}
			c.Raw, o.Raw = nil, nil
			if fmt.Sprint(c) != fmt.Sprint(o) {
				w.fail("view [%d, %d): %v at %d, want %v", v.From, v.To, c, n, o)
			}
			n++
		}
	}
	if n != len(want) || v.Rows != n || v.Bytes != sum {
		w.fail("view [%d, %d): %d changes of %d bytes, says %d of %d", v.From, v.To, n, sum, v.Rows, v.Bytes)
	}
	if n > 0 && (v.First != want[0].Position || v.Last != want[n-1].Position || v.Day != want[0].CommitTime.Day()) {
		w.fail("view [%d, %d): %s to %s of %s", v.From, v.To, v.First, v.Last, v.Day)
	}
}
