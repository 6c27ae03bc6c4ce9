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
	// drainBound is how long one drain may take, of up to 10,000,000 rows. A larger
	// one may take as much longer as it is larger.
	drainBound = 10 * time.Minute
	// pollEvery is how often the slot is looked at.
	pollEvery = 20 * time.Millisecond
	stopGrace = 90 * time.Second
)

// drained is what one drain by tidemark run took.
type drained struct {
	wall              time.Duration
	cpu, walsenderCPU float64
	// temporalCPU and s3CPU are what the servers have used meanwhile.
	temporalCPU, s3CPU float64
	peak               proc.Memory
}

// drain is the scenario drain.<name>: a backlog of so many changes of a shape,
// in transactions of per each.
func drain(name string, of shape, amount func(size) (rows, per int)) scenario {
	return scenario{"drain." + name, func(b *bench, ctx context.Context) error {
		rows, per := amount(b.size)
		return b.drain(ctx, name, of, rows, per)
	}}
}

// drain measures how long a backlog takes, from the start of the program to the
// slot's ack of the last transaction. Every run has a pipeline and a peer slot of
// its own, all made before the backlog, so that they read the same WAL.
func (b *bench) drain(ctx context.Context, letter string, of shape, rows, per int) (err error) {
	prefix := "drain." + letter + "."
	type lane struct {
		pipeline *pipeline.Pipeline
		own      string // the pipeline's slot
		peer     string
	}
	lanes := make([]lane, b.size.runs)
	defer func() {
		// A slot that is left behind keeps its WAL for all that follow.
		for _, l := range lanes {
			if l.pipeline != nil && ctx.Err() == nil {
				err = errors.Join(err, b.dropSlot(ctx, l.own), b.dropSlot(ctx, l.peer))
			}
		}
	}()
	for i := range lanes {
		name := fmt.Sprintf("drain-%s-%d", letter, i+1)
		// By default the rest of a backlog that does not fill a segment waits for
		// ten seconds, which is a choice and not a speed.
		p, settings, err := b.newPipeline(ctx, name, of, pipeline.Settings{"segment.max_age": "200ms"})
		if err != nil {
			return err
		}
		lanes[i] = lane{pipeline: p, own: settings.Slot(), peer: fmt.Sprintf("peer_%s_%d", letter, i+1)}
		if err := b.slotAt(ctx, lanes[i].peer); err != nil {
			return err
		}
	}
	b.say("drain.%s: writing %d rows in transactions of %d", letter, rows, per)
	inside, err := b.fill(ctx, of, rows, per, 32)
	if err != nil {
		return err
	}
	for i, l := range lanes {
		var theirs time.Duration
		var ours drained
		steps := []func() error{
			func() (err error) { theirs, err = b.peer.drain(ctx, l.peer, of.publication(), inside); return err },
			func() (err error) { ours, err = b.drainOwn(ctx, l.pipeline, l.own, inside); return err },
		}
		if i%2 == 1 { // neither always comes first
			steps[0], steps[1] = steps[1], steps[0]
		}
		for _, step := range steps {
			if err := step(); err != nil {
				return err
			}
		}
		ratio := ours.wall.Seconds() / theirs.Seconds()
		b.say("drain.%s run %d: %.2fs, pg_recvlogical %.2fs, ratio %.2f; CPU %.2fs, walsender %.2fs, Temporal %.2fs, S3 %.2fs; peak %.0f MiB; load %s",
			letter, i+1, ours.wall.Seconds(), theirs.Seconds(), ratio, ours.cpu, ours.walsenderCPU, ours.temporalCPU, ours.s3CPU, ours.peak.Anon, loadAverage())
		b.report.Add(prefix+"wall_ratio", "ratio", b.peer.String(), ratio)
		b.report.Add(prefix+"cpu_ratio", "ratio", "its walsender", ours.cpu/ours.walsenderCPU)
		b.report.Add(prefix+"wall_s", "s", "", ours.wall.Seconds())
		b.report.Add(prefix+"recvlogical_s", "s", "", theirs.Seconds())
		b.report.Add(prefix+"cpu_s", "s", "", ours.cpu)
		b.report.Add(prefix+"walsender_cpu_s", "s", "", ours.walsenderCPU)
		b.report.Add(prefix+"temporal_cpu_s", "s", "", ours.temporalCPU)
		b.report.Add(prefix+"s3_cpu_s", "s", "", ours.s3CPU)
		b.report.Add(prefix+"memory_mb", "MiB", "", ours.peak.Anon)
	}
	return nil
}

// drainOwn drains with tidemark run.
func (b *bench) drainOwn(ctx context.Context, p *pipeline.Pipeline, slot, inside string) (d drained, err error) {
	servers := []int{b.stack.Temporal.PID(), b.stack.S3.PID()}
	before, err := cpuOfAll(servers)
	if err != nil {
		return d, err
	}
	began := time.Now()
	run, err := p.Start(slot, "run")
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, run.Stop(stopGrace)) }()
	w := proc.Watch(ctx, run.PID())
	if err := b.await(ctx, slot, inside, &d.walsenderCPU, run); err != nil {
		return d, err
	}
	d.wall = time.Since(began)
	if d.cpu, err = cpuSeconds(run.PID()); err != nil {
		return d, err
	}
	after, err := cpuOfAll(servers)
	if err != nil {
		return d, err
	}
	d.temporalCPU, d.s3CPU = after[0]-before[0], after[1]-before[1]
	d.peak, err = w.End()
	return d, err
}

// await waits until slot has acknowledged inside, and sets walsenderCPU to what
// its walsender has used by then. It gives up when one of processes ends.
func (b *bench) await(ctx context.Context, slot, inside string, walsenderCPU *float64, processes ...*proc.Process) error {
	ctx, cancel := context.WithTimeout(ctx, drainBound*time.Duration(max(1, b.size.large/10_000_000)))
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		var done bool
		var pid *int
		err := b.conn.QueryRow(ctx, `select confirmed_flush_lsn >= $2::text::pg_lsn, active_pid
			from pg_replication_slots where slot_name = $1`, slot, inside).Scan(&done, &pid)
		if err != nil {
			return fmt.Errorf("wait for slot %s to acknowledge %s: %w", slot, inside, err)
		}
		if done {
			if pid == nil {
				return fmt.Errorf("slot %s has no walsender after the drain", slot)
			}
			*walsenderCPU, err = cpuSeconds(*pid)
			return err
		}
		if err := allRun(processes); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for slot %s to acknowledge %s: %w", slot, inside, context.Cause(ctx))
		case <-tick.C:
		}
	}
}
