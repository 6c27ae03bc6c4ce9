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
	// stillFor is how long a streamer's memory has not grown when its ring
	// counts as full.
	stillFor = 2 * time.Second
)

// passage is a way for the large transaction to pass through a ring.
type passage struct {
	name  string // of the figures: memory.<name>_mb
	ring  int    // MiB
	bound int    // MiB, that the streamer may have
	// late starts the worker only when the ring is full.
	late bool
}

// memory is the scenario memory.<name>: a streamer's memory while one large
// transaction passes through its ring, with a worker in a process of its own
// beside it. The transaction's rows are wide enough to fill the default ring.
func memory(way passage) scenario {
	return scenario{"memory." + way.name, func(b *bench, ctx context.Context) error { return b.passages(ctx, way) }}
}

func (b *bench) passages(ctx context.Context, way passage) (err error) {
	defer func() { err = errors.Join(err, b.dropSlots(ctx)) }()
	name := fmt.Sprintf("memory-%d-%t", way.ring, way.late)
	l, err := b.newPipeline(ctx, name, narrow, pipeline.Settings{"ring.max_bytes": fmt.Sprintf("%dMiB", way.ring)})
	if err != nil {
		return err
	}
	for i := range b.size.runs {
		used, took, err := b.pass(ctx, l, way)
		if err != nil {
			return err
		}
		streamer, worker := used[0], used[1]
		rate := float64(b.size.large) / took.Seconds()
		b.say("memory.%s run %d: streamer %.0f MiB (RSS %.0f), %.1f CPU s; worker %.0f MiB (RSS %.0f), %.1f CPU s; %.0f rows/s; load %s",
			way.name, i+1, streamer.Anon, streamer.RSS, streamer.cpu, worker.Anon, worker.RSS, worker.cpu, rate, loadAverage())
		bound := float64(way.bound)
		prefix := "memory." + way.name
		b.report.Add(prefix+"_mb", "MiB", fmt.Sprintf("at most %.0f", bound), streamer.Anon)
		b.report.Add(prefix+"_rss_mb", "MiB", "", streamer.RSS)
		b.report.Add(prefix+"_cpu_s", "s", "", streamer.cpu)
		b.report.Add(prefix+"_worker_mb", "MiB", "", worker.Anon)
		b.report.Add(prefix+"_worker_rss_mb", "MiB", "", worker.RSS)
		b.report.Add(prefix+"_rows_per_s", "rows/s", "", rate)
		if streamer.Anon > bound {
			b.failed = append(b.failed, fmt.Sprintf(
				"the streamer had %.0f MiB of anonymous memory with a ring of %d MiB: at most %.0f are allowed", streamer.Anon, way.ring, bound))
		}
	}
	return nil
}

// pass lets one transaction pass, and says what streamer and worker have used
// and how long that took from its commit, or from the worker's start if that
// came later.
func (b *bench) pass(ctx context.Context, l lane, way passage) (used []use, took time.Duration, err error) {
	var g group
	defer func() { err = errors.Join(err, g.stop()) }()
	first, then := apart, []string(nil)
	if way.late {
		first, then = apart[:1], apart[1:]
	}
	if err := g.start(ctx, l, first...); err != nil {
		return nil, 0, err
	}
	if err := b.streaming(ctx, l.slot, &g); err != nil {
		return nil, 0, err
	}
	inside, err := b.fill(ctx, narrow, b.size.large, b.size.large, 96)
	if err != nil {
		return nil, 0, err
	}
	if way.late {
		if err := still(ctx, g.watchers[0], float64(way.ring)/2); err != nil {
			return nil, 0, err
		}
	}
	if err := g.start(ctx, l, then...); err != nil {
		return nil, 0, err
	}
	began := time.Now()
	if _, err := b.await(ctx, l.slot, inside, &g); err != nil {
		return nil, 0, err
	}
	took = time.Since(began)
	b.say("memory.%s: the streamer's anonymous memory in twentieths of its life, MiB: %.0f", way.name, g.watchers[0].Curve(20))
	used, err = g.used()
	return used, took, err
}

// still waits until the peak is at least atLeast MiB and has not grown for a
// while.
func still(ctx context.Context, w *proc.Watcher, atLeast float64) error {
	ctx, cancel := context.WithTimeout(ctx, drainBound)
	defer cancel()
	tick := time.NewTicker(proc.SampleEvery)
	defer tick.Stop()
	var last float64
	since := time.Now()
	for {
		now := w.Peak().Anon
		if now > last {
			last, since = now, time.Now()
		}
		if now >= atLeast && time.Since(since) >= stillFor {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the ring to fill: the streamer has %.0f MiB: %w", now, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// streaming waits until somebody reads slot.
func (b *bench) streaming(ctx context.Context, slot string, by *group) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		var active bool
		if err := b.conn.QueryRow(ctx, "select active from pg_replication_slots where slot_name = $1", slot).Scan(&active); err != nil {
			return fmt.Errorf("wait for slot %s to be read: %w", slot, err)
		}
		if active {
			return nil
		}
		if err := by.allRun(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for slot %s to be read: %w", slot, context.Cause(ctx))
		case <-tick.C:
		}
	}
}
