package streamer

import (
	"context"
	"sync"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
)

// days remembers the listing of each day of the lake that a connection catches
// up through, so that each is made once.
type days struct {
	mu    sync.Mutex
	known map[change.Day]*lake.DayIndex
}

func (d *days) get(ctx context.Context, from Lake, day change.Day) (*lake.DayIndex, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if idx, ok := d.known[day]; ok {
		return idx, nil
	}
	idx, err := from.Day(ctx, day)
	if err != nil {
		return nil, err
	}
	if d.known == nil {
		d.known = map[change.Day]*lake.DayIndex{}
	}
	d.known[day] = idx
	return idx, nil
}

// forget is called on every connect: another process may have owned the slot,
// and written, in between.
func (d *days) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known = nil
}

// lakeError marks an error of reading the lake, which is worth another try.
type lakeError struct{ error }

func (e *lakeError) Unwrap() error { return e.error }
