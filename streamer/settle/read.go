package settle

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// read asks everyone and makes the plan.
func (c *Case) read(ctx context.Context) (err error) {
	if c.identity, err = c.deps.Lake.ReadIdentity(ctx); err != nil {
		return err
	}
	if err := c.checkIdentity(); err != nil {
		return err
	}
	c.rec, c.etag, err = c.deps.Lake.ReadAck(ctx)
	if errors.Is(err, lake.ErrNotFound) {
		c.rec, c.etag, err = c.identity.FirstAck(), "", nil
	}
	if err != nil {
		return err
	}
	if c.gaps, err = c.deps.Lake.Gaps(ctx); err != nil {
		return err
	}
	if c.recorded, err = c.deps.Lake.Divergences(ctx); err != nil {
		return err
	}
	if err := c.readSlot(ctx); err != nil {
		return err
	}
	if c.unfinished, err = c.deps.Segments.Unfinished(ctx, c.cfg.Pipeline, c.rec.Last); err != nil {
		return err
	}
	if err := c.readObjects(ctx); err != nil {
		return err
	}
	return c.decide()
}

func (c *Case) readSlot(ctx context.Context) (err error) {
	c.slot = nil
	slot, err := c.deps.Postgres.Slot(ctx)
	switch {
	case errors.Is(err, replication.ErrSlotMissing):
	case err != nil:
		return err
	case slot.Active:
		return refuse("stop the streamer first", "the replication slot %q is being read by the process %d of Postgres", slot.Name, slot.ActivePID)
	default:
		c.slot = &slot
	}
	c.flushed, err = c.deps.Postgres.FlushLSN(ctx)
	return err
}

// checkIdentity refuses a server that the lake does not go on with.
func (c *Case) checkIdentity() error {
	id, system := c.identity, c.cfg.System.SystemID
	present, _ := id.Present()
	err := id.Check(c.cfg.Pipeline, system)
	switch {
	case err == nil && c.cfg.Upgraded && len(id.Successions) == 0:
		return refuse("leave --upgraded out", "the server has the system identifier %s that the lake was set up with: it is no other cluster", system)
	case err == nil:
		return nil
	case id.Pipeline != c.cfg.Pipeline || id.Knows(system):
		return refuse("check pipeline, lake.url and postgres.url", "%v", err)
	case !c.cfg.Upgraded:
		return refuse("only if it was made from the old one by pg_upgrade, add --upgraded; else give the pipeline a name and a prefix of its own",
			"the lake was written from the Postgres with the system identifier %s, and this server has %s", present, system)
	}
	return nil
}

// lookBack is how many days are listed where no record says when the last rows
// were committed, and farthest how many at most.
const lookBack, farthest = 31, 3660

// readObjects lists what the lake has beyond its record, and, if the last row on
// record has not survived, back to one that has.
func (c *Case) readObjects(ctx context.Context) error {
	c.objects, c.kept, c.keptDay = nil, c.rec.Last, 0
	newest := change.TimeOf(time.Now()).Day() + 1 // the server's clock may be ahead
	oldest := newest - lookBack
	if !c.rec.LastTime.IsZero() {
		// Commit times do not grow with positions: one may be of the day before.
		oldest = change.TimeOf(c.rec.LastTime).Day() - 1
	}
	history := c.cfg.History.Shift(c.offset())
	survives := func(p change.Position) bool {
		return !c.recorded.Cover(p) && !lost(history, p)
	}
	back := c.comparable() && !survives(c.rec.Last)
	if back {
		c.kept = c.identity.Head()
	}
	until := oldest
	if back {
		until = newest - farthest
		if created := c.identity.CreatedAt; !created.IsZero() {
			until = max(until, change.TimeOf(created).Day()-1)
		}
		until = min(until, oldest)
	}
	for day := newest; day >= until; day-- {
		index, err := c.deps.Lake.Day(ctx, day)
		if err != nil {
			return err
		}
		found := false
		for _, e := range index.Entries() {
			beyond := c.rec.Last.Less(e.First)
			if back && survives(e.First) && !beyond {
				found = true
				if c.kept.Less(e.Last) {
					c.kept, c.keptDay = e.Last, day
				}
				continue
			}
			if !beyond && (!back || survives(e.First)) {
				continue
			}
			m, err := c.deps.Lake.ReadMetadata(ctx, e.Key)
			if err != nil {
				return err
			}
			c.objects = append(c.objects, object{first: e.First, last: e.Last, follows: m.Follows, day: day, key: e.Key, rows: m.Rows})
		}
		if found {
			until = max(until, min(oldest, day-1)) // one day more, as above
		}
	}
	for _, g := range c.gaps {
		if !g.Last.Less(c.kept) && !c.rec.Last.Less(g.Last) && survives(g.Last) {
			c.kept, c.keptDay = g.Last, 0
		}
	}
	slices.SortFunc(c.objects, func(a, b object) int { return a.first.Compare(b.first) })
	return nil
}

// comparable says whether the server's history says something of the rows on
// record: of those that its predecessor has written it knows nothing.
func (c *Case) comparable() bool {
	present, offset := c.identity.Present()
	return present == c.cfg.System.SystemID && c.rec.Last.Timeline > offset
}

// lost says that a history does not have a position.
func lost(h replication.History, p change.Position) bool {
	return h.TimelineOf(p.LSN) != p.Timeline
}
