package ring

import (
	"math"
	"strconv"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// SegmentID names a dispatched segment within one Ring. The first is 1, and
// each is one more than the one before.
type SegmentID uint64

// String gives the decimal number.
func (id SegmentID) String() string { return strconv.FormatUint(uint64(id), 10) }

// dispatched is a segment between Cut and the walk. It is touched three times:
// added, marked as finished, removed.
type dispatched struct {
	// to is the number after its last change.
	to   uint64
	rows int
	// held is what its end frees: all of it, or nothing if it was extended.
	held Usage
	// ack is that of the greatest marker in it, if marked.
	ack    Ack
	marked bool
	// open: Extend may still be called. finished: Finish was.
	open, finished bool
}

// Finish says that the object of the segment is in the lake. The walk then goes
// over all finished segments up to the first unfinished one. ackMoved says
// whether Ack has changed. An id that is finished already, or unknown, changes
// nothing.
func (r *Ring) Finish(id SegmentID) (ackMoved bool) {
	first := r.lastID - SegmentID(r.segments.len()) + 1
	if id < first || id > r.lastID {
		return false
	}
	s := r.segments.at(int(id - first))
	if s.finished {
		return false
	}
	s.finished, s.open = true, false
	r.finishedSegments++
	r.finished.add(s.held)
	return r.settle(s)
}

func (r *Ring) walk() (ackMoved bool) {
	for r.segments.len() > 0 && r.segments.front().finished {
		s := r.segments.pop()
		r.read = s.to
		r.held.sub(s.held)
		r.finished.sub(s.held)
		r.finishedSegments--
		if s.marked && r.move(s.ack) {
			ackMoved = true
		}
	}
	return ackMoved
}

// Ack is what may be acknowledged now.
func (r *Ring) Ack() Ack { return r.ack }

// Settled says that every change is finished: none waits or is in flight.
func (r *Ring) Settled() bool { return r.read == r.write }

// Stats is a picture of a Ring, for metrics and the status page.
type Stats struct {
	// Read, Cut and Write are the counters that divide the ranges.
	Read  uint64 `json:"read"`
	Cut   uint64 `json:"cut"`
	Write uint64 `json:"write"`
	// Dispatched is [read, cut) without what was extended, Finished the part of
	// it that is finished behind an unfinished segment, Waiting [cut, write).
	Dispatched Usage `json:"dispatched"`
	Finished   Usage `json:"finished"`
	Waiting    Usage `json:"waiting"`
	// Free is what is left of the bounds, never negative. Changes is the
	// largest int if their number has no bound.
	Free Usage `json:"free"`
	// Segments is the number of segments in flight, FinishedSegments of those
	// among them that are finished behind an unfinished one.
	Segments         int `json:"segments"`
	FinishedSegments int `json:"finished_segments"`
	// Full says that a change waits for room.
	Full bool `json:"full"`
	// Lifted says that Lift is on, Over by how many bytes MaxBytes is exceeded.
	Lifted bool  `json:"lifted"`
	Over   int64 `json:"over"`
	// Largest is the largest raw message so far, Peak the most bytes that the
	// ring has held.
	Largest int64 `json:"largest"`
	Peak    int64 `json:"peak"`
	// OpenTransaction says that the last transaction has not ended yet.
	OpenTransaction bool `json:"open_transaction"`
	// OldestWaiting is when the first waiting change was received; zero if none
	// waits.
	OldestWaiting change.Time `json:"oldest_waiting"`
}

// Stats takes a picture.
func (r *Ring) Stats() Stats {
	s := Stats{
		Read: r.read, Cut: r.cut, Write: r.write,
		Finished:         r.finished,
		Waiting:          Usage{int(r.write - r.cut), r.total - r.totalCut + int64(r.write-r.cut)*Overhead},
		Free:             Usage{math.MaxInt, max(0, r.cfg.MaxBytes-r.held.Bytes)},
		Segments:         r.segments.len(),
		FinishedSegments: r.finishedSegments,
		Full:             r.full(),
		Lifted:           r.lifted,
		Over:             max(0, r.held.Bytes-r.cfg.MaxBytes),
		Largest:          r.largest,
		Peak:             r.peak,
		OpenTransaction:  r.open,
	}
	s.Dispatched = r.held
	s.Dispatched.sub(s.Waiting)
	if r.cut < r.write {
		s.OldestWaiting = r.entry(r.cut).Received
	}
	if r.cfg.MaxChanges > 0 {
		s.Free.Changes = max(0, r.cfg.MaxChanges-r.held.Changes)
	}
	return s
}
