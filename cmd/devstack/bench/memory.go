package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/proc"
)

// allowance is what a streamer may need beside its ring, in MiB.
const allowance = 64

// ringCase is a ring through which the large transaction passes.
type ringCase struct {
	name string // of the figures: memory.<name>_mb
	ring int    // MiB
}

// memory watches a streamer's memory while one large transaction passes through
// its ring, with a worker in a process of its own beside it. Its rows are wide
// enough to fill the default ring.
func (b *bench) memory(ctx context.Context) error {
	for _, c := range []ringCase{{"streamer", 256}, {"streamer_small_ring", 32}} {
		if err := b.ringMemory(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) ringMemory(ctx context.Context, c ringCase) (err error) {
	name := fmt.Sprintf("memory-%d", c.ring)
	p, settings, err := b.newPipeline(ctx, name, pipeline.Settings{"ring.max_bytes": fmt.Sprintf("%dMiB", c.ring)})
	if err != nil {
		return err
	}
	defer func() {
		if ctx.Err() == nil {
			err = errors.Join(err, b.dropSlot(ctx, settings.Slot()))
		}
	}()
	for i := range b.size.runs {
		streamer, worker, err := b.pass(ctx, p, settings.Slot())
		if err != nil {
			return err
		}
		b.say("memory run %d, ring of %d MiB: streamer %.0f MiB (RSS %.0f), worker %.0f MiB (RSS %.0f); load %s",
			i+1, c.ring, streamer.anon, streamer.rss, worker.anon, worker.rss, loadAverage())
		bound := float64(c.ring + allowance)
		b.report.add("memory."+c.name+"_mb", "MiB", fmt.Sprintf("at most %.0f", bound), streamer.anon)
		b.report.add("memory."+c.name+"_rss_mb", "MiB", "", streamer.rss)
		b.report.add("memory."+c.name+"_worker_mb", "MiB", "", worker.anon)
		if streamer.anon > bound {
			b.failed = append(b.failed, fmt.Sprintf(
				"the streamer had %.0f MiB of anonymous memory with a ring of %d MiB: at most %.0f are allowed", streamer.anon, c.ring, bound))
		}
	}
	return nil
}

// pass lets one transaction pass and gives the peaks.
func (b *bench) pass(ctx context.Context, p *pipeline.Pipeline, slot string) (streamer, worker memory, err error) {
	var running []*proc.Process
	var watchers []*watcher
	defer func() {
		// The streamer first: it waits for the worker to finish.
		for _, r := range running {
			err = errors.Join(err, r.Stop(stopGrace))
		}
	}()
	for _, verb := range []string{"streamer", "worker"} {
		child, startErr := p.Start(verb, verb)
		if startErr != nil {
			return streamer, worker, startErr
		}
		running = append(running, child)
		watchers = append(watchers, watch(ctx, child.PID()))
	}
	if err := b.streaming(ctx, slot, running...); err != nil {
		return streamer, worker, err
	}
	inside, err := b.fill(ctx, b.size.large, b.size.large, 96)
	if err != nil {
		return streamer, worker, err
	}
	var cpu float64
	if err := b.await(ctx, slot, inside, &cpu, running...); err != nil {
		return streamer, worker, err
	}
	streamer, err = watchers[0].end()
	if err != nil {
		return streamer, worker, err
	}
	worker, err = watchers[1].end()
	return streamer, worker, err
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
		for _, p := range processes {
			if !p.Running() {
				return fmt.Errorf("a process ended by itself with status %d; the end of its log:\n%s", p.ExitCode(), p.Tail(20))
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for slot %s to be read: %w", slot, context.Cause(ctx))
		case <-tick.C:
		}
	}
}
