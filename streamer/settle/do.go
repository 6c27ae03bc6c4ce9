package settle

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
)

// Do settles the case: see the package comment for its steps. say is told of
// each that was done. After an error the rest is found by the next Look.
func (c *Case) Do(ctx context.Context, say func(string)) error {
	said := func(text string, args ...any) { say(fmt.Sprintf(text, args...)) }
	if c.succession {
		if err := c.succeed(ctx); err != nil {
			return err
		}
		said("the succession to the system %s is recorded", c.cfg.System.SystemID)
	}
	if !c.ahead {
		// The record first: a streamer that begins from it finds the objects of a
		// branch that nobody has settled, and stops.
		if err := c.moveAck(ctx, said); err != nil {
			return err
		}
		if err := c.diverge(ctx, said); err != nil {
			return err
		}
		return c.giveUpAll(ctx, said)
	}
	why := c.why
	if c.makeSlot {
		if err := c.newSlot(ctx, said); err != nil {
			return err
		}
	}
	if err := c.giveUpAll(ctx, said); err != nil {
		return err
	}
	// What has been stored meanwhile is a link of the chain.
	if err := c.read(ctx); err != nil {
		return err
	}
	if c.makeSlot || !c.ahead {
		return fmt.Errorf("the replication slot %q has changed meanwhile: somebody else is at work on it", c.cfg.Slot)
	}
	if err := c.diverge(ctx, said); err != nil {
		return err
	}
	if err := c.recordGaps(ctx, why, said); err != nil {
		return err
	}
	return c.moveAck(ctx, said)
}

func (c *Case) succeed(ctx context.Context) (err error) {
	c.identity, err = c.deps.Lake.RecordSuccession(ctx, lake.Succession{
		SystemID: c.cfg.System.SystemID, TimelineOffset: c.offset(),
		Reason: "pg_upgrade", At: time.Now(),
	})
	return err
}

func (c *Case) newSlot(ctx context.Context, said func(string, ...any)) error {
	if c.slot != nil {
		if _, err := c.deps.Postgres.DropSlot(ctx, c.cfg.Slot); err != nil {
			return err
		}
		said("the replication slot %q is dropped", c.cfg.Slot)
	}
	if c.cfg.Publish != nil {
		if err := c.cfg.Publish(ctx); err != nil {
			return err
		}
	}
	start, err := c.deps.Postgres.CreateSlot(ctx, c.cfg.Slot, c.cfg.Failover)
	if err != nil {
		return err
	}
	c.cfg.Replace = false
	said("the replication slot %q is made, and starts at %s", c.cfg.Slot, start)
	return nil
}

// giveUpAll ends the segments that can never be finished, and waits until no
// attempt of theirs can be under way.
func (c *Case) giveUpAll(ctx context.Context, said func(string, ...any)) error {
	uploading := false
	for _, rec := range c.giveUp {
		why := "its rows cannot be read again, and tidemark verify shows the recorded gap: " + c.why
		if c.gone().Cover(rec.Ref.Last) {
			why = "it was recorded on a branch of history that a failover has abandoned, and tidemark verify shows the recorded divergence"
		}
		running, err := c.deps.Segments.GiveUp(ctx, rec, why)
		if err != nil {
			return err
		}
		uploading = uploading || running
	}
	if n := len(c.giveUp); n > 0 {
		said("given up in Temporal: %s, the first at %s", count(n, "segment"), c.giveUp[0].Ref.First)
	}
	if !uploading {
		return nil
	}
	said("waiting %s until no attempt to upload them can be under way", c.cfg.Grace)
	timer := time.NewTimer(c.cfg.Grace)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// diverge records the abandoned branches.
func (c *Case) diverge(ctx context.Context, said func(string, ...any)) error {
	for _, d := range c.forks {
		objects, rows := c.over(d)
		d.Pipeline, d.SystemID = c.cfg.Pipeline, c.cfg.System.SystemID
		d.Objects, d.Rows = int64(len(objects)), rows
		for _, u := range c.unfinished {
			if d.Covers(u.Ref.Last) {
				d.Segments++
			}
		}
		for _, o := range objects[:min(len(objects), lake.MaxDivergenceKeys)] {
			d.Keys = append(d.Keys, o.key)
		}
		d.Reason = fmt.Sprintf("a failover to timeline %d, or a restore, has lost what was written from %s on timeline %d on", d.Through.Timeline, d.After.LSN+1, d.After.Timeline)
		d.At = now()
		if err := c.deps.Lake.RecordDivergence(ctx, d); err != nil {
			return err
		}
		said("the divergence after %s is recorded", d.After)
	}
	return nil
}

// recordGaps writes down what is missing.
func (c *Case) recordGaps(ctx context.Context, why string, said func(string, ...any)) error {
	empty := c.empty()
	if empty {
		why += fmt.Sprintf(", whose WAL ended at %s, and everything up to %s was in the lake", c.cfg.OldEnd, c.rec.Ack)
	}
	for _, m := range c.missing {
		err := c.deps.Lake.RecordGap(ctx, lake.Gap{
			Pipeline: c.cfg.Pipeline, SystemID: c.cfg.System.SystemID,
			Follows: m.from, Last: m.to, Empty: empty, Reason: why, At: now(),
		})
		if err != nil {
			return err
		}
		if empty {
			said("nothing is missing between %s and %s", m.from, m.to)
		} else {
			said("the gap after %s up to %s is recorded", m.from, m.to)
		}
	}
	return nil
}

// moveAck has the streamer go on from where the chain ends now.
func (c *Case) moveAck(ctx context.Context, said func(string, ...any)) error {
	if !c.ahead && !c.movesBack() {
		return nil
	}
	rec := lake.AckRecord{
		Last: c.end, LastTime: c.timeOf(c.end), Ack: c.acked, Timeline: c.history.TimelineOf(c.acked - 1),
		Writer: c.cfg.Writer, Seq: c.rec.Seq + 1, At: now(),
	}
	if _, err := c.deps.Lake.WriteAck(ctx, rec, c.etag); err != nil {
		return err
	}
	said("the lake has on record that the streamer goes on after %s", c.end)
	return nil
}

// empty says that it was shown that the predecessor had nothing that is not in
// the lake.
func (c *Case) empty() bool {
	return c.upgraded() && c.cfg.OldEnd > 0 && c.rec.Ack >= c.cfg.OldEnd && len(c.missing) == 1
}

// timeOf is the commit time that a message takes which comes next.
func (c *Case) timeOf(p change.Position) time.Time {
	day := change.Day(0)
	switch p {
	case c.rec.Last:
		return c.rec.LastTime
	case c.identity.Head():
		return c.identity.CreatedAt
	case c.kept:
		day = c.keptDay
	}
	for _, o := range c.objects {
		if o.last == p {
			day = o.day
		}
	}
	if day == 0 {
		return now()
	}
	return time.Unix(int64(day)*24*3600, 0).UTC()
}

func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// count says how many of a thing there are.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
