package streamer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
)

// furthest is the last position that this process has seen recorded in a
// segment, over all its lives. The lake's own record lags behind it. It only
// grows.
type furthest struct {
	mu  sync.Mutex
	pos change.Position
}

func (f *furthest) note(p change.Position) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pos.Less(p) {
		f.pos = p
	}
}

func (f *furthest) get() change.Position {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pos
}

// lacks says why the server of c cannot have the row at p any more; empty if it
// can.
func (c *connection) lacks(p change.Position) string {
	if c.gone.Cover(p) {
		return "" // it does, and that is settled
	}
	if tl := c.history.TimelineOf(p.LSN); tl != p.Timeline {
		return fmt.Sprintf("on this server LSN %s belongs to timeline %d", p.LSN, tl)
	}
	if p.LSN >= c.flushed {
		return fmt.Sprintf("this server's WAL ends at %s", c.flushed)
	}
	return ""
}

// checkKnown stops if the server lacks rows that this process has had recorded.
// A segment that begins beyond the end of the surviving history would never be
// met again: its first position does not come any more.
func (s *Streamer) checkKnown(c *connection) error {
	p := s.furthest.get()
	if p.IsZero() {
		return nil
	}
	if why := c.lacks(p); why != "" {
		return stop(doLost, "segments up to %s are recorded, but %s", p, why)
	}
	return nil
}

// lookBack bounds how many days before today checkAhead lists.
const lookBack = 31

// checkAhead stops if the lake has objects beyond its own record that hold rows
// which the server lacks: the process that uploaded them has ended before it
// could record them.
func (l *life) checkAhead(ctx context.Context, rec lake.AckRecord, c *connection) error {
	last := change.TimeOf(time.Now()).Day() + 1 // the server's clock may be ahead
	for day := max(change.TimeOf(rec.LastTime).Day(), last-lookBack); day <= last; day++ {
		idx, err := l.listDay(ctx, day)
		if err != nil {
			return err
		}
		for _, e := range idx.Entries() {
			if !rec.Last.Less(e.First) {
				continue
			}
			if why := c.lacks(e.Last); why != "" {
				return stop(doLost, "the lake's object %s goes up to %s, but %s", e.Key, e.Last, why)
			}
		}
	}
	return nil
}

// listDay lists a day of the lake, waiting while the lake cannot be reached.
func (l *life) listDay(ctx context.Context, day change.Day) (idx *lake.DayIndex, err error) {
	err = patiently(ctx, l.log.With("day", day), "the lake cannot be listed; streaming waits for it", func() (again bool, err error) {
		idx, err = l.days.get(ctx, l.lake, day)
		return true, err
	})
	return idx, err
}
