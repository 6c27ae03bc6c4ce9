package ring

import (
	"fmt"
	"sort"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// Propose returns the segment that should be closed now, the next changes from
// the cut on, and moves nothing: the same call returns the same, or more if
// more was added, until Cut. now is the current time; drain asks for whatever
// is complete.
//
// There is one to close when the waiting changes reach SegmentRows or
// SegmentBytes, when the day or the timeline changes among them, when the
// oldest of them is MaxAge old, when the ring is full, or on drain. It ends at
// the last transaction end within the limits. A transaction is cut in its
// middle only if it alone fills the segment, or alone fills the ring and
// nothing is dispatched that could make room; and never within the tables of
// one TRUNCATE.
func (r *Ring) Propose(now change.Time, drain bool) (View, bool) {
	if r.cut == r.write {
		return View{}, false
	}
	limit, closed := r.limit()
	if !closed && !drain && !r.full() && !r.aged(now) {
		return View{}, false
	}
	to, ok := r.boundary(limit, closed)
	if !ok {
		return View{}, false
	}
	return r.view(to), true
}

// Filled says whether what waits fills a segment. It is cheap enough to be asked
// for every change.
func (r *Ring) Filled() bool {
	return r.write-r.cut >= uint64(r.cfg.SegmentRows) || r.total-r.totalCut >= r.cfg.SegmentBytes
}

// NextDue says in what time, 0 or more, age alone makes Propose return a
// segment. False: not at all, as no complete transaction is waiting.
func (r *Ring) NextDue(now change.Time) (time.Duration, bool) {
	if r.marks.len() == 0 {
		return 0, false
	}
	if r.aged(now) {
		return 0, true
	}
	return r.cfg.MaxAge - r.age(now), true
}

// age is the time since the oldest waiting change was received.
func (r *Ring) age(now change.Time) time.Duration {
	return time.Duration(now-r.entry(r.cut).Received) * time.Microsecond
}

// aged says whether the oldest waiting change is too old. A clock that was set
// back makes it look younger than it is: a change from far in the future is
// due too, instead of waiting until the clock has come there.
func (r *Ring) aged(now change.Time) bool {
	age := r.age(now)
	return age >= r.cfg.MaxAge || age <= -r.cfg.MaxAge
}

// limit returns the furthest end that a segment from the cut may have, with no
// regard to transactions, and whether nothing that is still to come could be in
// it: it is closed.
func (r *Ring) limit() (end uint64, closed bool) {
	end = r.write
	if byRows := r.cut + uint64(r.cfg.SegmentRows); byRows <= end {
		end, closed = byRows, true
	}
	if r.total-r.totalCut >= r.cfg.SegmentBytes {
		// A single change may be larger than a segment.
		byBytes := max(r.cut+1, r.within(r.totalCut+r.cfg.SegmentBytes))
		end, closed = min(end, byBytes), true
	}
	if b, ok := r.nextBreak(); ok && b <= end {
		end, closed = b, true
	}
	return end, closed
}

// boundary returns where a segment ends that may reach up to limit.
func (r *Ring) boundary(limit uint64, closed bool) (uint64, bool) {
	if b, ok := r.nextBreak(); ok && b == limit {
		return b, true
	}
	if n := sort.Search(r.marks.len(), func(i int) bool { return r.marks.at(i).index > limit }); n > 0 {
		return r.marks.at(n - 1).index, true
	}
	if !closed && (!r.full() || r.segments.len() > 0) {
		return 0, false
	}
	to := limit
	for to > r.cut && r.entry(to-1).Joined {
		to--
	}
	if to > r.cut {
		return to, true
	}
	// A group that begins at the cut goes as a whole.
	for to = limit; to < r.write; to++ {
		if !r.entry(to).Joined {
			return to + 1, true
		}
	}
	return 0, false
}

// nextBreak is the first change of another day or timeline than the one at the
// cut.
func (r *Ring) nextBreak() (uint64, bool) {
	for i := range min(2, r.breaks.len()) {
		if b := *r.breaks.at(i); b > r.cut {
			return b, true
		}
	}
	return 0, false
}

// Waiting returns the waiting changes up to and including the one at last.
// reached says that it is among them; beyond that it is not and will not come
// any more, since the stream has passed it.
func (r *Ring) Waiting(last change.Position) (v View, reached, beyond bool) {
	passed := !r.last.Less(last)
	if r.cut == r.write {
		return View{From: r.cut, To: r.cut}, false, passed
	}
	to := r.write
	if passed {
		to = r.search(func(c *change.Change) bool { return last.Less(c.Position) })
		reached = to > r.cut && r.entry(to-1).Position == last
	}
	return r.view(to), reached, passed && !reached
}

// Cut dispatches v, which a Propose or a Waiting returned: the cut moves to its
// end. v must begin at the cut and lie in one day and timeline.
func (r *Ring) Cut(v View) (SegmentID, error) {
	if s := r.opened(); s != nil {
		return 0, fmt.Errorf("cut segment %s: segment %d before it is still open", v.First, r.lastID)
	}
	if err := r.cuttable(v); err != nil {
		return 0, fmt.Errorf("cut segment %s: %w", v.First, err)
	}
	r.push(dispatched{to: v.From, held: usage(v)})
	r.advance(v)
	return r.lastID, nil
}

// Open begins a segment at the cut that an earlier process has finished
// already. Its changes are taken over by Extend as they arrive, and Finish
// closes it.
func (r *Ring) Open() (SegmentID, error) {
	if s := r.opened(); s != nil {
		return 0, fmt.Errorf("open a segment: segment %d before it is still open", r.lastID)
	}
	r.push(dispatched{to: r.cut, open: true})
	return r.lastID, nil
}

// Extend moves the cut over v, into the segment that Open began. The changes
// count no longer against the bounds, but the walk does not pass them until
// Finish(id). v is as for Cut, and of the segment's day and timeline.
func (r *Ring) Extend(id SegmentID, v View) error {
	s := r.opened()
	if s == nil || id != r.lastID {
		return fmt.Errorf("extend segment %d by %s: it is not open", id, v.First)
	}
	err := r.cuttable(v)
	if err == nil && s.rows > 0 && r.breaks.len() > 0 && *r.breaks.front() == v.From {
		err = fmt.Errorf("its day or timeline is another than the segment's")
	}
	if err != nil {
		return fmt.Errorf("extend segment %d by %s: %w", id, v.First, err)
	}
	r.held.sub(usage(v))
	r.advance(v)
	return nil
}

// Lift lets changes in although the ring is full, for as long as the rest of an
// adopted boundary that cannot fit is still to come. It has no effect while a
// segment is dispatched: that will make room when it finishes.
func (r *Ring) Lift(on bool) { r.lifted = on }

// cuttable refuses a View that no segment may have.
func (r *Ring) cuttable(v View) error {
	switch {
	case v.From != r.cut || v.To > r.write:
		return fmt.Errorf("it is [%d, %d), and what waits is [%d, %d)", v.From, v.To, r.cut, r.write)
	case v.From == v.To:
		return fmt.Errorf("it is empty")
	}
	if b, ok := r.nextBreak(); ok && b < v.To {
		return fmt.Errorf("the day or timeline changes inside it, at %s", r.entry(b).Position)
	}
	return nil
}

// opened is the last segment if it is open.
func (r *Ring) opened() *dispatched {
	if r.segments.len() == 0 || !r.segments.back().open {
		return nil
	}
	return r.segments.back()
}

func (r *Ring) push(s dispatched) {
	r.lastID++
	r.segments.push(s)
}

// advance moves the cut over v, into the last segment. That takes the last
// marker on the way: the walk passes a segment as a whole.
func (r *Ring) advance(v View) {
	s := r.segments.back()
	for r.marks.len() > 0 && r.marks.front().index <= v.To {
		m := r.marks.pop()
		e := r.entry(m.index - 1)
		s.ack, s.marked = Ack{LSN: m.lsn, Last: e.Position, Time: e.CommitTime}, true
	}
	s.to = v.To
	s.rows += v.Rows
	r.cut = v.To
	r.totalCut += v.Bytes
	for r.breaks.len() > 0 && *r.breaks.front() < r.cut {
		r.breaks.pop()
	}
	r.trim()
}

// trim drops the pages that hold no waiting change and get none any more.
func (r *Ring) trim() {
	for r.pages.len() > 0 {
		p := *r.pages.front()
		if p.n == 0 || p.end() > r.cut || r.pages.len() == 1 && !p.full() {
			return
		}
		r.pages.pop()
		r.list = nil
	}
}

// view makes the View from the cut to to, which is in [cut, write].
func (r *Ring) view(to uint64) View {
	v := View{From: r.cut, To: to, Rows: int(to - r.cut)}
	if v.Rows == 0 {
		return v
	}
	last := r.pageOf(to - 1)
	first, end := r.entry(r.cut), r.entry(to-1)
	v.First, v.Last, v.Day = first.Position, end.Position, first.CommitTime.Day()
	v.Bytes = r.before(to) - r.totalCut
	if len(r.list) != last+1 {
		r.list = make([]*page, last+1)
		for i := range r.list {
			r.list[i] = *r.pages.at(i)
		}
	}
	v.pages = r.list
	return v
}

// pageOf is the place in pages of the page with the change numbered i, which
// waits or is in the front page.
func (r *Ring) pageOf(i uint64) int {
	return sort.Search(r.pages.len(), func(k int) bool { return (*r.pages.at(k)).first > i }) - 1
}

func (r *Ring) entry(i uint64) *change.Change {
	k := 0
	if p := *r.pages.front(); i >= p.end() {
		k = r.pageOf(i)
	}
	p := *r.pages.at(k)
	return &p.changes[i-p.first]
}

// before is the number of raw bytes in [0, i), for i in [cut, write].
func (r *Ring) before(i uint64) int64 {
	if i == r.write {
		return r.total
	}
	p := *r.pages.at(r.pageOf(i))
	sum := p.before
	for k := range i - p.first {
		sum += int64(len(p.changes[k].Raw))
	}
	return sum
}

// within is the greatest i in [cut, write] with no more than sum raw bytes in
// [0, i). sum is at least totalCut.
func (r *Ring) within(sum int64) uint64 {
	k := sort.Search(r.pages.len(), func(k int) bool { return (*r.pages.at(k)).before > sum }) - 1
	p := *r.pages.at(k)
	i, have := p.first, p.before
	for i < p.end() {
		if have += int64(len(p.changes[i-p.first].Raw)); have > sum {
			break
		}
		i++
	}
	return i
}

// search is the first waiting change for which f is true, or write. f is false
// for all before it and true for all after.
func (r *Ring) search(f func(*change.Change) bool) uint64 {
	n := sort.Search(int(r.write-r.cut), func(i int) bool { return f(r.entry(r.cut + uint64(i))) })
	return r.cut + uint64(n)
}
