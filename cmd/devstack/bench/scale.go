package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/proc"
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
		took, err := b.scaleOnce(ctx, i+1, counts, rows, far.Endpoint())
		if err != nil {
			return err
		}
		for k, n := range counts {
			rate := float64(rows) / took[k].Seconds()
			speedup := took[0].Seconds() / took[k].Seconds()
			b.say("scale run %d: %d workers, %.1fs, %.0f rows/s, %.2f times one worker; load %s", i+1, n, took[k].Seconds(), rate, speedup, loadAverage())
			b.report.Add(fmt.Sprintf("scale.workers_%d.rows_per_s", n), "rows/s", "", rate)
			if n > 1 {
				b.report.Add(fmt.Sprintf("scale.workers_%d.ratio", n), "ratio", "one worker", speedup)
			}
		}
	}
	return nil
}

// scaleOnce gives the time that each number of workers takes.
func (b *bench) scaleOnce(ctx context.Context, run int, counts []int, rows int, store string) (took []time.Duration, err error) {
	var pipelines []*pipeline.Pipeline
	var slots []string
	defer func() { err = errors.Join(err, b.dropSlots(ctx, slots)) }()
	for _, n := range counts {
		p, settings, err := b.newPipeline(ctx, fmt.Sprintf("scale-%d-%d", run, n), narrow, pipeline.Settings{
			"segment.max_rows": scaleRows, "segment.max_age": "200ms", "worker.concurrency": 1, "lake.endpoint": store,
		})
		if err != nil {
			return nil, err
		}
		pipelines, slots = append(pipelines, p), append(slots, settings.Slot())
	}
	inside, err := b.fill(ctx, narrow, rows, scaleRows, 32)
	if err != nil {
		return nil, err
	}
	for i, n := range counts {
		d, err := b.drainWith(ctx, pipelines[i], slots[i], inside, n)
		if err != nil {
			return nil, err
		}
		took = append(took, d)
	}
	return took, nil
}

// drainWith drains with a streamer and so many workers, from their start to the
// ack of everything.
func (b *bench) drainWith(ctx context.Context, p *pipeline.Pipeline, slot, inside string, workers int) (took time.Duration, err error) {
	var running []*proc.Process
	defer func() {
		// The streamer first: it waits for the workers to finish.
		for _, r := range running {
			err = errors.Join(err, r.Stop(stopGrace))
		}
	}()
	began := time.Now()
	for i := range workers + 1 {
		name, verb := slot, "streamer"
		if i > 0 {
			name, verb = fmt.Sprintf("%s_worker%d", slot, i), "worker"
		}
		child, err := p.Start(name, verb)
		if err != nil {
			return 0, err
		}
		running = append(running, child)
	}
	var walsender float64
	if err := b.await(ctx, slot, inside, &walsender, running...); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}
