package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
)

const (
	// farBy is how long a PUT to a far store takes.
	farBy = 200 * time.Millisecond
	// scaleRows is how many rows a segment of the scaling has.
	scaleRows = 1000
)

// scale drains the same backlog with 1, 2, 4 and 8 worker processes, each of
// which uploads one segment at a time to a far store.
func (b *bench) scale(ctx context.Context) (err error) {
	far, err := b.slowStore(farBy)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, far.Close()) }()
	counts := []int{1, 2, 4, 8}
	rows := b.size.segments * scaleRows
	for i := range b.size.runs {
		by, err := b.scaleOnce(ctx, i+1, counts, rows, far.Endpoint())
		if err != nil {
			return err
		}
		for k, n := range counts {
			wall := by[k].wall.Seconds()
			rate, speedup := float64(rows)/wall, by[0].wall.Seconds()/wall
			b.say("scale run %d: %d workers, %.1fs, %.0f rows/s, %.2f times one worker; load %s", i+1, n, wall, rate, speedup, loadAverage())
			prefix := fmt.Sprintf("scale.workers_%d.", n)
			b.report.Add(prefix+"rows_per_s", "rows/s", "", rate)
			if n > 1 {
				b.report.Add(prefix+"ratio", "ratio", "one worker", speedup)
			}
			b.addApart(prefix, by[k].used)
		}
	}
	return nil
}

// scaleOnce drains with each number of workers.
func (b *bench) scaleOnce(ctx context.Context, run int, counts []int, rows int, store string) (by []drained, err error) {
	defer func() { err = errors.Join(err, b.dropSlots(ctx)) }()
	var lanes []lane
	for _, n := range counts {
		l, err := b.newPipeline(ctx, fmt.Sprintf("scale-%d-%d", run, n), narrow, pipeline.Settings{
			"segment.max_rows": scaleRows, "segment.max_age": "200ms", "worker.concurrency": 1, "lake.endpoint": store,
		})
		if err != nil {
			return nil, err
		}
		lanes = append(lanes, l)
	}
	inside, err := b.fill(ctx, narrow, rows, scaleRows, 32)
	if err != nil {
		return nil, err
	}
	for i, n := range counts {
		d, err := b.drainBy(ctx, lanes[i], inside, append([]string{"streamer"}, slices.Repeat([]string{"worker"}, n)...)...)
		if err != nil {
			return nil, err
		}
		by = append(by, d)
	}
	return by, nil
}
