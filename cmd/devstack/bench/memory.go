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
	name := fmt.Sprintf("memory-%d-%t", way.ring, way.late)
	p, settings, err := b.newPipeline(ctx, name, narrow, pipeline.Settings{"ring.max_bytes": fmt.Sprintf("%dMiB", way.ring)})
	if err != nil {
		return err
	}
	defer func() {
		if ctx.Err() == nil {
			err = errors.Join(err, b.dropSlot(ctx, settings.Slot()))
		}
	}()
	for i := range b.size.runs {
		streamer, worker, took, err := b.pass(ctx, p, settings.Slot(), way)
		if err != nil {
			return err
		}
		rate := float64(b.size.large) / took.Seconds()
		b.say("memory.%s run %d: streamer %.0f MiB (RSS %.0f), %.1f CPU s; worker %.0f MiB (RSS %.0f), %.1f CPU s; %.0f rows/s; load %s",
			way.name, i+1, streamer.Anon, streamer.RSS, streamer.cpu, worker.Anon, worker.RSS, worker.cpu, rate, loadAverage())
		bound := float64(way.bound)
		prefix := "memory." + way.name
		b.report.Add(prefix+"_mb", "MiB", fmt.Sprintf("at most %.0f", bound), streamer.Anon)
		b.report.Add(prefix+"_rss_mb", "MiB", "", streamer.RSS)
		b.report.Add(prefix+"_cpu_s", "s", "", streamer.cpu)
		b.report.Add(prefix+"_worker_mb", "MiB", "", worker.Anon)
		b.report.Add(prefix+"_rows_per_s", "rows/s", "", rate)
		if streamer.Anon > bound {
			b.failed = append(b.failed, fmt.Sprintf(
				"the streamer had %.0f MiB of anonymous memory with a ring of %d MiB: at most %.0f are allowed", streamer.Anon, way.ring, bound))
		}
	}
	return nil
}

// use is what a process has used in all.
type use struct {
	proc.Memory // at its peak
	cpu         float64
}

// pass lets one transaction pass, and says how long that took from its commit,
// or from the worker's start if that came later.
func (b *bench) pass(ctx context.Context, p *pipeline.Pipeline, slot string, way passage) (streamer, worker use, took time.Duration, err error) {
	var running []*proc.Process
	var watchers []*proc.Watcher
	defer func() {
		// The streamer first: it waits for the worker to finish.
		for _, r := range running {
			err = errors.Join(err, r.Stop(stopGrace))
		}
		for _, w := range watchers {
			_, werr := w.End()
			err = errors.Join(err, werr)
		}
	}()
	start := func(verb string) error {
		child, err := p.Start(verb, verb)
		if err == nil {
			running = append(running, child)
			watchers = append(watchers, proc.Watch(ctx, child.PID()))
		}
		return err
	}
	if err := start("streamer"); err != nil {
		return streamer, worker, 0, err
	}
	if !way.late {
		if err := start("worker"); err != nil {
			return streamer, worker, 0, err
		}
	}
	if err := b.streaming(ctx, slot, running...); err != nil {
		return streamer, worker, 0, err
	}
	inside, err := b.fill(ctx, narrow, b.size.large, b.size.large, 96)
	if err != nil {
		return streamer, worker, 0, err
	}
	if way.late {
		if err := still(ctx, watchers[0], float64(way.ring)/2); err != nil {
			return streamer, worker, 0, err
		}
		if err := start("worker"); err != nil {
			return streamer, worker, 0, err
		}
	}
	var walsender float64
	began := time.Now()
	if err := b.await(ctx, slot, inside, &walsender, running...); err != nil {
		return streamer, worker, 0, err
	}
	took = time.Since(began)
	b.say("memory.%s: the streamer's anonymous memory in twentieths of its life, MiB: %.0f", way.name, watchers[0].Curve(20))
	for i, u := range []*use{&streamer, &worker} {
		if u.cpu, err = cpuSeconds(running[i].PID()); err != nil {
			return streamer, worker, 0, err
		}
		if u.Memory, err = watchers[i].End(); err != nil {
			return streamer, worker, 0, err
		}
	}
	return streamer, worker, took, nil
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
func (b *bench) streaming(ctx context.Context, slot string, processes ...*proc.Process) error {
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
		if err := allRun(processes); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for slot %s to be read: %w", slot, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

func allRun(processes []*proc.Process) error {
	for _, p := range processes {
		if !p.Running() {
			return fmt.Errorf("a process ended by itself with status %d; the end of its log:\n%s", p.ExitCode(), p.Tail(20))
		}
	}
	return nil
}
