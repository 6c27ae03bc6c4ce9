package ring

import (
	"bytes"
	"fmt"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// Ring is described at the package. It is not safe for concurrent use.
type Ring struct {
	cfg Config

	// read <= cut <= write; all three only grow.
	read, cut, write uint64
	// total is the raw bytes of all changes ever added, [0, write); totalCut of
	// those in [0, cut).
	total, totalCut int64
	// held is what counts against the bounds: [read, write) without what
	// Extend has taken over.
	held Usage

	// pages hold the waiting changes in order. Once there is a waiting change
	// the front page holds the first of them. No page is empty. Dispatched
	// changes are held by their Views only.
	pages deque[*page]
	slab  slab
	// list is the page list of the View made last, for the next one if it
	// covers the same pages, so that asking again and again costs nothing. It
	// is nil or begins with the front page.
	list []*page

	// marks are the markers in (cut, write], index and lsn both strictly
	// growing, except that a transaction which ends at or below greatest has
	// greatest. Every index is the end of a transaction.
	marks deque[marker]
	// breaks are the numbers, in [cut, write), of changes whose day or timeline
	// is not that of the change before. Strictly growing.
	breaks deque[uint64]
	// greatest is the greatest LSN ever marked. ack.LSN <= greatest.
	greatest change.LSN

	// segments are the dispatched ones in order: each begins where the one
	// before ends, the first at read, the last ends at cut. The front one is
	// unfinished. Their ids are consecutive, the back one's is lastID.
	segments deque[dispatched]
	lastID   SegmentID
	// finished sums up the segments that are finished and not walked over.
	finished         Usage
	finishedSegments int

	ack Ack

	// last is the position received last: of change write-1, or Start.Last.
	last change.Position
	// lastTime is that change's commit time, or Start.Time.
	lastTime change.Time
	// shared is the copy that the next change may share: that of change
	// write-1, if this is Joined. Else nil.
	shared []byte
	// joined says that change write-1 is Joined: its group is incomplete.
	joined bool
	// open says that the transaction of change write-1 has not ended.
	open bool

	// refused is the size of the change that Admit refused last and that has
	// not been added since, else -1.
	refused int
	lifted  bool
	largest int64
	peak    int64
}

// marker says: when [0, index) is finished, lsn may be acknowledged.
type marker struct {
	index uint64
	lsn   change.LSN
}

// New returns an empty ring that goes on after s.
func New(c Config, s Start) *Ring {
	return &Ring{
		cfg:      c.withDefaults(),
		greatest: s.Ack,
		ack:      Ack{LSN: s.Ack, Last: s.Last, Time: s.Time},
		last:     s.Last,
		lastTime: s.Time,
		refused:  -1,
	}
}

// LastReceived is the position of the change added last, or Start.Last. What
// stands at or below it is dropped by Add and needs no room.
func (r *Ring) LastReceived() change.Position { return r.last }

// LastTime is the commit time of the change at LastReceived, or Start.Time.
func (r *Ring) LastTime() change.Time { return r.lastTime }

// Admit says whether a change of raw bytes may be added now without exceeding
// the bounds. Three things may exceed them: a change larger than the ring, into
// an empty one; the rest of a TRUNCATE's tables once the first is in; and what
// Lift lets in. A refusal is remembered: until room is made, the ring counts as
// full and Propose closes what it can.
func (r *Ring) Admit(raw int) bool {
	if r.fits(raw) {
		r.refused = -1
		return true
	}
	r.refused = raw
	return false
}

func (r *Ring) fits(raw int) bool {
	if r.held.Changes == 0 || r.joined || r.lifted && r.segments.len() == 0 {
		return true
	}
	if r.cfg.MaxChanges > 0 && r.held.Changes >= r.cfg.MaxChanges {
		return false
	}
	return r.held.Bytes+int64(raw)+Overhead <= r.cfg.MaxBytes
}

// full says that a change is waiting for room.
func (r *Ring) full() bool { return r.refused >= 0 && !r.fits(r.refused) }

// Add appends a change and copies its raw bytes, so c and c.Raw may be reused
// at once. What stands at or below LastReceived is dropped: added is false.
// Changes of one TRUNCATE share one copy, yet each counts in full against the
// bounds.
//
// Add does not ask Admit. The errors say that the stream is not one stream: a
// transaction follows one that never ended, or a later timeline goes on below
// what was received from an earlier one. The ring is unchanged then.
func (r *Ring) Add(c *change.Change) (added bool, err error) {
	if !r.last.Less(c.Position) {
		return false, nil
	}
	if err := r.follows(c.Position); err != nil {
		return false, err
	}
	raw := r.shared
	if raw == nil || !bytes.Equal(raw, c.Raw) {
		raw = r.slab.copy(c.Raw)
	}
	if r.write > 0 && (c.CommitTime.Day() != r.lastTime.Day() || c.Position.Timeline != r.last.Timeline) {
		r.breaks.push(r.write)
	}

	p := r.pageFor(len(raw))
	e := &p.changes[p.n]
	*e = *c
	e.Raw = raw
	p.n++
	p.bytes += int64(len(raw))

	r.write++
	r.total += int64(len(raw))
	r.held.add(Usage{1, int64(len(raw)) + Overhead})
	r.last, r.lastTime = c.Position, c.CommitTime
	r.open, r.joined, r.shared = true, c.Joined, nil
	if c.Joined {
		r.shared = raw
	}
	r.refused = -1
	r.largest = max(r.largest, int64(len(raw)))
	r.peak = max(r.peak, r.held.Bytes)
	return true, nil
}

// follows refuses a position that cannot come after the last one.
func (r *Ring) follows(p change.Position) error {
	switch {
	case r.open && (p.LSN != r.last.LSN || p.Timeline != r.last.Timeline):
		return fmt.Errorf("add change %s: the transaction of %s, the change before, has not ended", p, r.last)
	case p.Timeline != r.last.Timeline && p.LSN < r.last.LSN:
		return fmt.Errorf("add change %s: its timeline goes on below %s, which was received before: "+
			"these rows belong to a branch of history that a failover abandoned", p, r.last)
	}
	return nil
}

// pageFor returns the page that the next change, of raw bytes, goes into.
func (r *Ring) pageFor(raw int) *page {
	if r.pages.len() > 0 {
		if p := *r.pages.back(); p.fits(raw) {
			return p
		}
	}
	p := &page{first: r.write, before: r.total}
	r.pages.push(p)
	r.trim()
	return p
}

// Mark says that a transaction has ended and that end, its commit record's end,
// may be acknowledged when everything added before is finished. It is called
// for empty transactions too, and after a non-transactional message, with the
// LSN that this arrived with. A transaction that came again and ends at or
// below the last received change changes nothing. ackMoved says whether Ack has
// changed by it.
func (r *Ring) Mark(end change.LSN) (ackMoved bool) {
	if r.open {
		// After a reconnection older transactions come first. Theirs is not
		// the end of the one that the break has left open.
		if end <= r.last.LSN {
			return false
		}
		r.open = false
		// A keepalive before a failover can have marked more than this: then
		// the LSN stands still, and only the position goes on.
		return r.mark(max(end, r.greatest))
	}
	return r.Keepalive(end)
}

// Keepalive says that the server has sent everything below end, so that end may
// be acknowledged when everything added before is finished. It counts for
// nothing while a transaction is open, across reconnections too. The caller
// leaves it out between a Begin and its Commit: the ring does not see a
// transaction whose changes are all dropped. ackMoved is as of Mark.
func (r *Ring) Keepalive(end change.LSN) (ackMoved bool) {
	if r.open || end <= r.greatest {
		return false
	}
	return r.mark(end)
}

// mark puts a marker at the write end, at the cheapest place: a marker is kept
// for itself only while the changes before it wait.
func (r *Ring) mark(lsn change.LSN) (ackMoved bool) {
	r.greatest = lsn
	switch {
	case r.Settled():
		return r.move(Ack{LSN: lsn, Last: r.last, Time: r.lastTime})
	case r.write == r.cut:
		// Into the last segment with a change: an empty one may have been opened.
		i := r.segments.len() - 1
		for r.segments.at(i).rows == 0 {
			i--
		}
		s := r.segments.at(i)
		s.ack, s.marked = Ack{LSN: lsn, Last: r.last, Time: r.lastTime}, true
	case r.marks.len() > 0 && r.marks.back().index == r.write:
		r.marks.back().lsn = lsn
	default:
		r.marks.push(marker{index: r.write, lsn: lsn})
	}
	return false
}

func (r *Ring) move(a Ack) (moved bool) {
	moved = a != r.ack
	r.ack = a
	return moved
}

// Usage is an amount of changes.
type Usage struct {
	Changes int `json:"changes"`
	// Bytes is raw bytes and Overhead for each change.
	Bytes int64 `json:"bytes"`
}

func (u *Usage) add(v Usage) { u.Changes += v.Changes; u.Bytes += v.Bytes }
func (u *Usage) sub(v Usage) { u.Changes -= v.Changes; u.Bytes -= v.Bytes }

func usage(v View) Usage { return Usage{v.Rows, v.Bytes + int64(v.Rows)*Overhead} }
