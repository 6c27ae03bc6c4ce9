package ring

import (
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// model is the ring as one would explain it: everything that ever happened is
// in slices, and every question is answered by looking through all of them.
type model struct {
	cfg     Config
	start   Start
	entries []change.Change
	marks   []marker
	segs    []modelSegment // all of them, walked ones too
	cut     int
	last    change.Position
	open    bool
	refused int
	lifted  bool

	lastTime change.Time
}

type modelSegment struct {
	from, to       int
	extended       bool
	open, finished bool
}

func newModel(c Config, s Start) *model {
	return &model{cfg: c.withDefaults(), start: s, last: s.Last, lastTime: s.Time, refused: -1}
}

func (m *model) add(c change.Change) bool {
	if !m.last.Less(c.Position) {
		return false
	}
	c.Raw = append([]byte(nil), c.Raw...)
	m.entries = append(m.entries, c)
	m.last, m.lastTime, m.open, m.refused = c.Position, c.CommitTime, true, -1
	return true
}

func (m *model) greatest() change.LSN {
	g := m.start.Ack
	for _, k := range m.marks {
		g = max(g, k.lsn)
	}
	return g
}

func (m *model) mark(end change.LSN) {
	switch {
	case m.open && end <= m.last.LSN:
	case m.open:
		m.open = false
		m.marks = append(m.marks, marker{uint64(len(m.entries)), max(end, m.greatest())})
	default:
		m.keepalive(end)
	}
}

func (m *model) keepalive(end change.LSN) {
	if !m.open && end > m.greatest() {
		m.marks = append(m.marks, marker{uint64(len(m.entries)), end})
	}
}

// read is the end of the contiguous prefix of finished segments.
func (m *model) read() int {
	at := 0
	for _, s := range m.segs {
		if !s.finished {
			break
		}
		at = s.to
	}
	return at
}

func (m *model) ack() Ack {
	return m.ackAt(m.read())
}

func (m *model) ackAt(read int) Ack {
	a := Ack{LSN: m.start.Ack, Last: m.start.Last, Time: m.start.Time}
	for _, k := range m.marks {
		if int(k.index) <= read {
			a.LSN = max(a.LSN, k.lsn)
			if k.index > 0 {
				a.Last, a.Time = m.entries[k.index-1].Position, m.entries[k.index-1].CommitTime
			}
		}
	}
	return a
}

// naiveAck is what a pipeline without a walk would acknowledge: the end of the
// latest finished segment, whatever lies before it.
func (m *model) naiveAck() Ack {
	at := 0
	for _, s := range m.segs {
		if s.finished {
			at = max(at, s.to)
		}
	}
	return m.ackAt(at)
}

func (m *model) usage(from, to int) (u Usage) {
	for _, c := range m.entries[from:to] {
		u.add(Usage{1, int64(len(c.Raw)) + Overhead})
	}
	return u
}

// inFlight are the segments that the walk has not passed, and what they hold.
func (m *model) inFlight() (n, finished int, held, done Usage) {
	walked := true
	for _, s := range m.segs {
		walked = walked && s.finished
		if walked {
			continue
		}
		n++
		var u Usage
		if !s.extended {
			u = m.usage(s.from, s.to)
		}
		held.add(u)
		if s.finished {
			finished++
			done.add(u)
		}
	}
	return n, finished, held, done
}

func (m *model) held() Usage {
	_, _, held, _ := m.inFlight()
	held.add(m.usage(m.cut, len(m.entries)))
	return held
}

func (m *model) admit(raw int) bool {
	ok := m.fits(raw)
	m.refused = -1
	if !ok {
		m.refused = raw
	}
	return ok
}

func (m *model) fits(raw int) bool {
	held := m.held()
	n, _, _, _ := m.inFlight()
	joined := len(m.entries) > 0 && m.entries[len(m.entries)-1].Joined
	switch {
	case held.Changes == 0, joined, m.lifted && n == 0:
		return true
	case m.cfg.MaxChanges > 0 && held.Changes+1 > m.cfg.MaxChanges:
		return false
	}
	return held.Bytes+int64(raw)+Overhead <= m.cfg.MaxBytes
}

func (m *model) full() bool { return m.refused >= 0 && !m.fits(m.refused) }

// together says whether the changes i and j may be in one segment.
func (m *model) together(i, j int) bool {
	a, b := &m.entries[i], &m.entries[j]
	return a.CommitTime.Day() == b.CommitTime.Day() && a.Position.Timeline == b.Position.Timeline
}

func (m *model) endsTransaction(at int) bool {
	for _, k := range m.marks {
		if int(k.index) == at {
			return true
		}
	}
	return at < len(m.entries) && !m.together(m.cut, at)
}

// propose returns the end of the segment that should be closed, or 0.
func (m *model) propose(now change.Time, drain bool) int {
	if m.cut == len(m.entries) {
		return 0
	}
	var bytes int64
	fitting, whole, smallest := 0, 0, 0
	closed := len(m.entries)-m.cut >= m.cfg.SegmentRows
	same := true
	for at := m.cut; at < len(m.entries); at++ {
		same = same && m.together(m.cut, at)
		if !same {
			closed = true
			break
		}
		bytes += int64(len(m.entries[at].Raw))
		rows, end := at+1-m.cut, at+1
		if m.entries[at].Joined {
			continue
		}
		if smallest == 0 {
			smallest = end
		}
		if rows <= m.cfg.SegmentRows && (bytes <= m.cfg.SegmentBytes || rows == 1) {
			fitting = end
			if m.endsTransaction(end) {
				whole = end
			}
		}
	}
	closed = closed || bytes >= m.cfg.SegmentBytes
	segs, _, _, _ := m.inFlight()
	_, aged := m.age(now)
	switch {
	case !closed && !drain && !m.full() && !aged:
		return 0
	case whole > 0:
		return whole
	case !closed && (!m.full() || segs > 0):
		return 0
	case fitting > 0:
		return fitting
	}
	return smallest
}

func (m *model) age(now change.Time) (left time.Duration, aged bool) {
	age := time.Duration(now-m.entries[m.cut].Received) * time.Microsecond
	return m.cfg.MaxAge - age, age.Abs() >= m.cfg.MaxAge
}

func (m *model) nextDue(now change.Time) (time.Duration, bool) {
	for at := m.cut + 1; at <= len(m.entries); at++ {
		for _, k := range m.marks {
			if int(k.index) == at {
				left, aged := m.age(now)
				if aged {
					left = 0
				}
				return left, true
			}
		}
	}
	return 0, false
}

func (m *model) waiting(last change.Position) (to int, reached, beyond bool) {
	to = m.cut
	for i := m.cut; i < len(m.entries); i++ {
		if p := m.entries[i].Position; !last.Less(p) {
			to = i + 1
			reached = reached || p == last
		}
	}
	return to, reached, !reached && !m.last.Less(last)
}

func (m *model) stats() Stats {
	n, finished, held, done := m.inFlight()
	all := m.held()
	s := Stats{
		Read: uint64(m.read()), Cut: uint64(m.cut), Write: uint64(len(m.entries)),
		Dispatched: held, Finished: done, Waiting: m.usage(m.cut, len(m.entries)),
		Segments: n, FinishedSegments: finished,
		Full: m.full(), Lifted: m.lifted, Over: max(0, all.Bytes-m.cfg.MaxBytes),
		OpenTransaction: m.open,
	}
	if m.cut < len(m.entries) {
		s.OldestWaiting = m.entries[m.cut].Received
	}
	for _, c := range m.entries {
		s.Largest = max(s.Largest, int64(len(c.Raw)))
	}
	return s
}
