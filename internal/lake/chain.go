package lake

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// link is what the chain check needs to know of one object or recorded gap:
// about 130 bytes.
type link struct {
	parts KeyParts
	// follows is the position that it says it follows; known is false if it
	// could not be read, and then it fits anywhere.
	follows change.Position
	known   bool
	rows    int64
	// gap: a recorded gap, which goes from just after follows to parts.Last.
	gap bool
}

func (l link) first() change.Position { return l.parts.First }
func (l link) last() change.Position  { return l.parts.Last }

func (l link) key() string {
	if l.gap {
		return Gap{Follows: l.follows, Last: l.parts.Last}.Key()
	}
	return l.parts.Key()
}

// gapLink makes a recorded gap a link. Its first position is the least that
// stands after the one it follows.
func gapLink(g Gap) link {
	first := g.Follows
	if first.Ordinal++; first.Ordinal > change.MaxOrdinal {
		first.LSN, first.Ordinal = first.LSN+1, 0
	}
	return link{parts: KeyParts{First: first, Last: g.Last}, follows: g.Follows, known: true, gap: true}
}

// chainCheck walks the links of one pipeline in stream order. It is pure.
//
// The walk stands at cur, the last position of the link that it accepted last.
// The next link must begin after it and follow exactly it. What begins at or
// before cur overlaps with that link, and is not walked to; what it holds
// beyond cur is remembered in covered, so that no change counts as missing that
// lies in an overlapping object.
type chainCheck struct {
	links []link
	// head is where the pipeline began, nil if unknown; acked is up to where
	// the lake is complete by its own record, nil if nothing is acknowledged.
	head, acked *change.Position
	// noTail: there are several chains, and acked cannot be said of any.
	noTail bool
	report func(Finding)

	// at is the link that was accepted last, nil before the first.
	at           *link
	cur, covered change.Position
	// ackSeen: a link, or a gap that was reported, ends at acked.
	ackSeen  bool
	followed map[change.Position]bool

	inFlight, islands int64
	// within counts the links that lie in a recorded gap: it turned out to be
	// smaller than what was written down.
	within int64
}

func (c *chainCheck) run() {
	slices.SortFunc(c.links, func(a, b link) int {
		return cmp.Or(a.first().Compare(b.first()), a.last().Compare(b.last()), cmp.Compare(a.key(), b.key()))
	})
	if c.head != nil {
		c.cur = *c.head
		c.sawEnd(c.cur)
	}
	for i := 0; i < len(c.links); {
		n := &c.links[i]
		if !c.cur.Less(n.first()) {
			c.overlapping(n)
			i++
			continue
		}
		same := i + 1
		for same < len(c.links) && c.links[same].first() == n.first() {
			same++
		}
		// The others of the group overlap with the one that is taken.
		best := c.choose(c.links[i:same])
		c.links[i], c.links[i+best] = c.links[i+best], c.links[i]
		c.join(n)
		c.accept(n)
		i++
	}
	c.tail()
}

// choose picks the link to go on with among those with the same first position.
func (c *chainCheck) choose(group []link) int {
	if len(group) == 1 {
		return 0
	}
	if c.followed == nil {
		c.followed = make(map[change.Position]bool, len(c.links))
		for _, l := range c.links {
			c.followed[l.follows] = c.followed[l.follows] || l.known
		}
	}
	rank := func(l link) int {
		r := 0
		if l.known && l.follows == c.cur {
			r += 4
			if l.gap {
				r += 4 // what lies in it is passed over
			}
		} else if !l.known {
			r += 2
		}
		if c.followed[l.last()] || c.acked != nil && l.last() == *c.acked {
			r++
		}
		return r
	}
	best := 0
	for i := range group {
		if rank(group[i]) > rank(group[best]) {
			best = i
		}
	}
	return best
}

// overlapping reports a link that begins at or before cur.
func (c *chainCheck) overlapping(n *link) {
	c.covered = later(c.covered, n.last())
	c.sawEnd(n.last())
	switch {
	case c.at != nil && c.at.gap && !c.at.last().Less(n.last()):
		// Rows that were given up and have come into the lake after all: they
		// are there once, for nothing brings them again.
		c.within++
	case c.at == nil:
		c.report(Finding{Kind: KindHead, Key: n.key(),
			Text: fmt.Sprintf("begins at %s, before the pipeline's start at %s", n.first(), c.cur)})
	case n.first() == c.at.first() && n.last() == c.at.last():
		c.report(Finding{Kind: KindDuplicate, Key: n.key(), Other: c.at.key(),
			Text: fmt.Sprintf("has the same boundary as %s", c.at.key())})
	default:
		c.report(Finding{Kind: KindOverlap, Key: n.key(), Other: c.at.key(),
			Text: fmt.Sprintf("begins at %s, inside of %s", n.first(), c.at.key())})
	}
}

// join compares what n follows with where the walk stands.
func (c *chainCheck) join(n *link) {
	if !n.known || n.follows == c.cur || c.at == nil && c.head == nil {
		return
	}
	if n.follows.Less(c.cur) {
		if c.at == nil {
			c.report(Finding{Kind: KindHead, Key: n.key(),
				Text: fmt.Sprintf("follows %s, but the pipeline's start is %s", n.follows, c.cur)})
			return
		}
		c.report(Finding{Kind: KindOverlap, Key: c.at.key(), Other: n.key(),
			Text: fmt.Sprintf("stands between %s and %s, and %s says that nothing does", n.follows, n.first(), n.key())})
		return
	}
	after := later(c.cur, c.covered)
	if !after.Less(n.follows) {
		return
	}
	through := n.follows
	if c.acked == nil || c.acked.Less(through) {
		// What comes next is not acknowledged: it is being uploaded.
		c.islands++
		if c.acked == nil || !after.Less(*c.acked) {
			return
		}
		through = *c.acked
	}
	c.sawEnd(through)
	f := Finding{Kind: KindGap, Key: n.key(), After: after, Through: through}
	if c.at == nil {
		f.Kind = KindHead
		f.Text = fmt.Sprintf("is the first object, but follows %s: no object holds the changes from the pipeline's start at %s to %s", n.follows, after, through)
	} else {
		f.Text = fmt.Sprintf("follows %s, but the object before it ends at %s: no object holds the changes after %s up to %s", n.follows, c.cur, after, through)
	}
	c.report(f)
}

func (c *chainCheck) accept(n *link) {
	c.at, c.cur = n, n.last()
	if c.acked == nil {
		c.inFlight++
		return
	}
	c.sawEnd(c.cur)
	if c.acked.Less(n.first()) {
		c.inFlight++
	}
}

// sawEnd notes that a link, or a gap that was reported, ends at p.
func (c *chainCheck) sawEnd(p change.Position) {
	if c.acked != nil && *c.acked == p {
		c.ackSeen = true
	}
}

// tail compares the chain's end with what was acknowledged.
func (c *chainCheck) tail() {
	end := later(c.cur, c.covered)
	switch {
	case c.noTail:
	case c.acked == nil && c.at != nil:
		c.report(Finding{Kind: KindTail, Key: ackKey,
			Text: fmt.Sprintf("does not exist, so nothing says how far the %d objects must reach: right after a pipeline's first start it appears with the first acknowledgment, else it was deleted", c.inFlight)})
	case c.acked == nil || c.ackSeen:
	case end.Less(*c.acked):
		c.report(Finding{Kind: KindTail, Key: ackKey, After: end, Through: *c.acked,
			Text: fmt.Sprintf("says that everything up to %s is in the lake, but the last object ends at %s", *c.acked, end)})
	default:
		c.report(Finding{Kind: KindTail, Key: ackKey,
			Text: fmt.Sprintf("says that a segment ends at %s, and no object ends there", *c.acked)})
	}
}

func later(a, b change.Position) change.Position {
	if a.Less(b) {
		return b
	}
	return a
}
