package settle

import (
	"fmt"
	"slices"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// plan is what is to be done about a situation.
type plan struct {
	found, steps []string

	history replication.History
	// succession is to be recorded.
	succession bool
	// makeSlot: there is no slot that can be read. ahead: there is one, which
	// stands ahead of the record, or will once it is made.
	makeSlot, ahead bool
	// why is the reason of gaps.
	why string
	// forks are divergences that are not recorded yet.
	forks lake.Divergences
	// ack is what the record says of the LSN, as it holds on this server.
	ack change.LSN
	// giveUp are the segments that can never be finished.
	giveUp []segment.Record
	// gaps, end and acked are for the slot as it stands; not if it is to be made.
	missing []stretch
	end     change.Position
	acked   change.LSN
}

// stretch is a run of positions that nothing covers.
type stretch struct{ from, to change.Position }

// decide makes the plan of what was read. It asks nobody.
func (c *Case) decide() error {
	c.plan = plan{history: c.cfg.History.Shift(c.offset())}
	present, _ := c.identity.Present()
	if c.succession = present != c.cfg.System.SystemID; c.succession {
		c.foundOf("the server has the system identifier %s, and the lake was written from %s: it is the successor that pg_upgrade has made", c.cfg.System.SystemID, present)
		c.step("record the succession in %s/_tidemark/pipeline.json: timelines of this server count from %d on", c.deps.Lake.URL(), c.history.Current)
	}
	if c.comparable() {
		if err := c.findForks(); err != nil {
			return err
		}
	}
	c.ack = c.ackHere()
	if err := c.decideSlot(); err != nil {
		return err
	}
	c.giveUp = nil
	if c.ahead {
		if !c.makeSlot {
			c.stretches(c.slot.ConfirmedFlush)
		}
		c.giveUp = c.cutOff()
	} else {
		for _, u := range c.unfinished {
			if c.gone().Cover(u.Ref.Last) {
				c.giveUp = append(c.giveUp, u)
			}
		}
		c.end, c.acked = c.kept, c.ack
	}
	c.describe()
	return nil
}

func (c *Case) foundOf(text string, args ...any) {
	c.plan.found = append(c.plan.found, fmt.Sprintf(text, args...))
}

func (c *Case) step(text string, args ...any) {
	c.plan.steps = append(c.plan.steps, fmt.Sprintf(text, args...))
}

// gone are all abandoned branches, those to be recorded too.
func (c *Case) gone() lake.Divergences { return append(slices.Clone(c.recorded), c.forks...) }

// findForks finds the abandoned branches that positions of the lake, its record
// and Temporal are on.
func (c *Case) findForks() error {
	look := func(p change.Position, what string) error {
		switch {
		case c.gone().Cover(p):
			return nil
		case !lost(c.history, p) && (p.Timeline != c.history.Current || p.LSN < c.flushed):
			return nil
		}
		a, next, ok := c.history.Left(p)
		if !ok {
			return refuse("if it was restored from an older copy, end its recovery anew (recovery.signal, and recovery_target_timeline = 'latest'), so that Postgres begins a timeline of its own at once, and run this again before anything is written; else give the pipeline a new prefix of the lake",
				"%s stands at %s, and this server's WAL ends at %s on timeline %d, with no switchpoint that tells its new rows from the old ones", what, p, c.flushed, c.history.Current)
		}
		c.forks = append(c.forks, lake.Divergence{After: change.JustBefore(a.Timeline, a.End), Through: change.JustBefore(next, a.End)})
		return nil
	}
	if err := look(c.rec.Last, "the last row that the lake has on record"); err != nil {
		return err
	}
	for _, o := range c.objects {
		if err := look(o.last, "the lake's object "+o.key); err != nil {
			return err
		}
	}
	for _, u := range c.unfinished {
		if err := look(u.Ref.Last, "the segment "+u.Ref.First.String()); err != nil {
			return err
		}
	}
	if _, ended := c.history.EndOf(c.rec.Timeline); !ended && c.rec.Timeline != c.history.Current {
		return look(change.Position{Timeline: c.rec.Timeline, LSN: c.rec.Ack}, "the ack that the lake has on record")
	}
	return nil
}

// ackHere is the recorded ack as it holds on this server's history.
func (c *Case) ackHere() change.LSN {
	if !c.comparable() || c.rec.Timeline == c.history.Current {
		return c.rec.Ack
	}
	if end, ended := c.history.EndOf(c.rec.Timeline); ended {
		return min(c.rec.Ack, end)
	}
	// The branch that it is on left the surviving one somewhere below, and rows
	// may stand between. All that is known is the last row.
	here := c.kept.LSN
	for _, d := range c.gone() {
		if d.Covers(c.kept) || d.Covers(change.Position{Timeline: c.rec.Timeline, LSN: c.rec.Ack}) {
			here = min(here, d.After.LSN+1)
		}
	}
	return here
}

// decideSlot says what is to become of the slot.
func (c *Case) decideSlot() error {
	s := c.slot
	switch {
	case s == nil:
		c.why = fmt.Sprintf("the replication slot %q was gone, and a new one was made", c.cfg.Slot)
		c.foundOf("the replication slot %q does not exist", c.cfg.Slot)
	case s.Lost():
		reason := s.InvalidationReason
		if reason == "" {
			reason = "max_slot_wal_keep_size was exceeded"
		}
		c.why = fmt.Sprintf("the replication slot %q was invalidated (%s), and a new one was made", c.cfg.Slot, reason)
		c.foundOf("the replication slot %q was invalidated (%s): rows committed since %s cannot be read from it", c.cfg.Slot, reason, s.ConfirmedFlush)
	case c.cfg.Replace:
		c.why = fmt.Sprintf("the publication was gone, and the replication slot %q was made anew after it", c.cfg.Slot)
		c.foundOf("the publication of this pipeline is gone: the replication slot %q cannot be read any further", c.cfg.Slot)
	case s.ConfirmedFlush > c.ack:
		c.ahead = true
		c.why = fmt.Sprintf("the replication slot %q stood at %s, ahead of what the lake had on record (%s): it was advanced, or dropped and made again", c.cfg.Slot, s.ConfirmedFlush, c.ack)
		c.foundOf("the replication slot %q stands at %s, ahead of what the lake has on record (%s)", c.cfg.Slot, s.ConfirmedFlush, c.ack)
	case c.succession:
		return refuse("see that postgres.url names the upgraded server, and not another copy of the old one",
			"the replication slot %q stands at %s, which is not beyond what the lake has on record (%s): after pg_upgrade LSNs go on", c.cfg.Slot, s.ConfirmedFlush, c.ack)
	case c.flushed < c.ack:
		return refuse("connect to the server that the pipeline was reading from; if that is lost, give the pipeline a new prefix of the lake",
			"this server's WAL ends at %s, and the lake has on record that everything up to %s is safe: it was restored from an older copy", c.flushed, c.ack)
	}
	if c.upgraded() {
		c.why = fmt.Sprintf("the server was replaced by the one that pg_upgrade made of it (system %s)", c.cfg.System.SystemID)
	}
	if s != nil && !s.Lost() && !c.cfg.Replace {
		return nil
	}
	if !c.cfg.Recreate {
		return refuse("tidemark setup --recreate-slot makes a new one and records the gap", "%s", c.plan.found[len(c.plan.found)-1])
	}
	c.makeSlot, c.ahead = true, true
	return nil
}

// upgraded says that what is missing is what the predecessor may have written
// last.
func (c *Case) upgraded() bool {
	_, offset := c.identity.Present()
	return c.cfg.Upgraded && (c.succession || c.rec.Timeline <= offset)
}

// links are what the lake has beyond the record, in stream order: objects that
// have survived, at least in part, and recorded gaps.
func (c *Case) links() []object {
	gone := c.gone()
	var links []object
	for _, o := range c.objects {
		if !gone.Cover(o.first) {
			links = append(links, o)
		}
	}
	for _, g := range c.gaps {
		links = append(links, object{first: g.Follows, follows: g.Follows, last: g.Last})
	}
	slices.SortStableFunc(links, func(a, b object) int { return a.first.Compare(b.first) })
	return links
}

// stretches finds what is missing up to where a slot stands. Objects that were
// finished out of order stay links: before each, what it follows is the end of
// the stretch. Where a slot stands before the end of such an object, what it
// could still bring before that is given up too: no segment could be cut so that
// it ends there.
func (c *Case) stretches(slot change.LSN) {
	c.missing, c.acked = nil, slot
	cur := c.kept
	for _, l := range c.links() {
		if !cur.Less(l.last) {
			continue
		}
		if cur.Less(l.follows) {
			c.missing = append(c.missing, stretch{cur, l.follows})
		}
		cur = l.last
	}
	if to := change.JustBefore(c.history.TimelineOf(slot-1), slot); cur.Less(to) {
		c.missing = append(c.missing, stretch{cur, to})
		cur = to
	}
	c.end = cur
}

// cutOff are the segments that nothing leads to any more. Behind a slot that is
// to be made all are; behind one that stands ahead those go on that follow the
// last object without a break.
func (c *Case) cutOff() []segment.Record {
	if c.makeSlot {
		return c.unfinished
	}
	var off []segment.Record
	cur := c.end
	for _, u := range c.unfinished {
		if u.Ref.Follows == cur && !c.gone().Cover(u.Ref.Last) {
			cur = u.Ref.Last
		} else {
			off = append(off, u)
		}
	}
	return off
}

// describe says what was found, and what is to be done, in the order of Do.
func (c *Case) describe() {
	for _, d := range c.forks {
		held := "nothing of it is in the lake"
		if objects, rows := c.over(d); len(objects) > 0 {
			held = fmt.Sprintf("the lake has %s with %s of it", count(len(objects), "object"), count(int(rows), "row"))
			if d.After.LSN >= objects[0].first.LSN && d.After.Timeline == objects[0].first.Timeline {
				held += ", some of them from before the switchpoint"
			}
		}
		c.foundOf("timeline %d went on from %s on timeline %d, and the database has lost what was written there beyond; %s",
			d.Through.Timeline, d.After.LSN+1, d.After.Timeline, held)
	}
	if n := len(c.giveUp); n > 0 {
		verb := "are"
		if n == 1 {
			verb = "is"
		}
		c.foundOf("%s %s recorded in Temporal and can never be finished, the first at %s", count(n, "segment"), verb, c.giveUp[0].Ref.First)
	}
	diverge := func() {
		for _, d := range c.forks {
			c.step("record the divergence after %s in the lake", d.After)
		}
	}
	giveUp := func() {
		if n := len(c.giveUp); n > 0 {
			c.step("give up in Temporal: %s", count(n, "segment"))
		}
	}
	if !c.ahead {
		if c.movesBack() {
			c.step("move _tidemark/ack.json back to %s, the last row that has survived", c.end)
		}
		diverge()
		giveUp()
		return
	}
	if c.makeSlot && c.slot != nil {
		c.step("drop the replication slot %q", c.cfg.Slot)
	}
	if c.makeSlot {
		c.step("make the replication slot %q", c.cfg.Slot)
	}
	giveUp()
	diverge()
	if c.makeSlot {
		c.step("record what the lake lacks between %s and the new slot as gaps", c.kept)
		c.step("move _tidemark/ack.json to where the new slot starts")
		return
	}
	for _, m := range c.missing {
		c.step("record the gap after %s up to %s", m.from, m.to)
	}
	c.step("move _tidemark/ack.json to %s", c.end)
}

// movesBack says that the record speaks of a row that has not survived, or of a
// timeline that a streamer could make nothing of.
func (c *Case) movesBack() bool {
	_, ended := c.history.EndOf(c.rec.Timeline)
	return c.end != c.rec.Last || c.comparable() && !ended && c.rec.Timeline != c.history.Current
}

// over gives the objects that hold rows of an abandoned branch.
func (c *Case) over(d lake.Divergence) (objects []object, rows int64) {
	for _, o := range c.objects {
		if d.Covers(o.last) {
			objects = append(objects, o)
			rows += o.rows
		}
	}
	return objects, rows
}
