package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
)

const (
	// drainBound is how long one drain may take, of up to 10,000,000 rows. A larger
	// one may take as much longer as it is larger.
	drainBound = 10 * time.Minute
	// pollEvery is how often the slot is looked at.
	pollEvery = 20 * time.Millisecond
	stopGrace = 90 * time.Second
)

// drained is what one drain took.
type drained struct {
	wall         time.Duration
	walsenderCPU float64
	// temporalCPU and s3CPU are what the servers have used meanwhile.
	temporalCPU, s3CPU float64
	// used is by process, in the order of their starts.
	used []use
}

// cpu is what all processes have used together.
func (d drained) cpu() (all float64) {
	for _, u := range d.used {
		all += u.cpu
	}
	return all
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
// slot's ack of the last transaction. Every run has two pipelines, one of them
// for streamer and worker apart, and a peer slot of its own, all made before the
// backlog, so that they read the same WAL.
func (b *bench) drain(ctx context.Context, letter string, of shape, rows, per int) (err error) {
	defer func() { err = errors.Join(err, b.dropSlots(ctx)) }()
	type entrants struct {
		inOne, apart lane
		peer         string
	}
	runs := make([]entrants, b.size.runs)
	// By default the rest of a backlog that does not fill a segment waits for
	// ten seconds, which is a choice and not a speed.
	settings := pipeline.Settings{"segment.max_age": "200ms"}
	for i := range runs {
		e := &runs[i]
		if e.inOne, err = b.newPipeline(ctx, fmt.Sprintf("drain-%s-%d", letter, i+1), of, settings); err != nil {
			return err
		}
		if e.apart, err = b.newPipeline(ctx, fmt.Sprintf("drain-%s-apart-%d", letter, i+1), of, settings); err != nil {
			return err
		}
		e.peer = fmt.Sprintf("peer_%s_%d", letter, i+1)
		if err := b.slotAt(ctx, e.peer); err != nil {
			return err
		}
	}
	b.say("drain.%s: writing %d rows in transactions of %d", letter, rows, per)
	inside, err := b.fill(ctx, of, rows, per, 32)
	if err != nil {
		return err
	}
	for i, e := range runs {
		var theirs time.Duration
		var ours, parts drained
		steps := []func() error{
			func() (err error) { theirs, err = b.peer.drain(ctx, e.peer, of.publication(), inside); return err },
			func() (err error) { ours, err = b.drainBy(ctx, e.inOne, inside, inOne...); return err },
			func() (err error) { parts, err = b.drainBy(ctx, e.apart, inside, apart...); return err },
		}
		for k := range steps {
			if err := steps[(i+k)%len(steps)](); err != nil { // none always comes first
				return err
			}
		}
		b.addDrain("drain."+letter, i+1, theirs, ours, parts)
	}
	return nil
}

// addDrain adds what a run of a drain has shown: of pg_recvlogical, of tidemark
// run, and of streamer and worker apart.
func (b *bench) addDrain(name string, run int, theirs time.Duration, ours, parts drained) {
	prefix := name + "."
	ratio := ours.wall.Seconds() / theirs.Seconds()
	b.say("%s run %d: %.2fs, pg_recvlogical %.2fs, ratio %.2f; CPU %.2fs, walsender %.2fs, Temporal %.2fs, S3 %.2fs; peak %.0f MiB",
		name, run, ours.wall.Seconds(), theirs.Seconds(), ratio, ours.cpu(), ours.walsenderCPU, ours.temporalCPU, ours.s3CPU, ours.used[0].Anon)
	b.report.Add(prefix+"wall_ratio", "ratio", b.peer.String(), ratio)
	b.report.Add(prefix+"cpu_ratio", "ratio", "its walsender", ours.cpu()/ours.walsenderCPU)
	b.report.Add(prefix+"wall_s", "s", "", ours.wall.Seconds())
	b.report.Add(prefix+"recvlogical_s", "s", "", theirs.Seconds())
	b.report.Add(prefix+"cpu_s", "s", "", ours.cpu())
	b.report.Add(prefix+"walsender_cpu_s", "s", "", ours.walsenderCPU)
	b.report.Add(prefix+"temporal_cpu_s", "s", "", ours.temporalCPU)
	b.report.Add(prefix+"s3_cpu_s", "s", "", ours.s3CPU)
	b.addMemory(prefix, ours.used[0].Memory)

	prefix += "apart."
	ratio = parts.wall.Seconds() / theirs.Seconds()
	b.say("%s run %d, apart: %.2fs, ratio %.2f; CPU %.2fs, walsender %.2fs; peak of the streamer %.0f MiB, of the worker %.0f; load %s",
		name, run, parts.wall.Seconds(), ratio, parts.cpu(), parts.walsenderCPU, parts.used[0].Anon, parts.used[1].Anon, loadAverage())
	b.report.Add(prefix+"wall_ratio", "ratio", b.peer.String(), ratio)
	b.report.Add(prefix+"cpu_ratio", "ratio", "its walsender", parts.cpu()/parts.walsenderCPU)
	b.addApart(prefix, parts.used)
}

// drainBy drains with processes of the given verbs, from the start of the first
// to the ack of everything.
func (b *bench) drainBy(ctx context.Context, l lane, inside string, verbs ...string) (d drained, err error) {
	servers := []int{b.stack.Temporal.PID(), b.stack.S3.PID()}
	before, err := cpuOfAll(servers)
	if err != nil {
		return d, err
	}
	var g group
	defer func() { err = errors.Join(err, g.stop()) }()
	began := time.Now()
	if err := g.start(ctx, l, verbs...); err != nil {
		return d, err
	}
	if d.walsenderCPU, err = b.await(ctx, l.slot, inside, &g); err != nil {
		return d, err
	}
	d.wall = time.Since(began)
	if d.used, err = g.used(); err != nil {
		return d, err
	}
	after, err := cpuOfAll(servers)
	if err != nil {
		return d, err
	}
	d.temporalCPU, d.s3CPU = after[0]-before[0], after[1]-before[1]
	return d, nil
}

// await waits until slot has acknowledged inside, and gives what its walsender
// has used by then. It gives up when a process that drains it ends.
func (b *bench) await(ctx context.Context, slot, inside string, by *group) (walsenderCPU float64, err error) {
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
			return 0, fmt.Errorf("wait for slot %s to acknowledge %s: %w", slot, inside, err)
		}
		if done {
			if pid == nil {
				return 0, fmt.Errorf("slot %s has no walsender after the drain", slot)
			}
			return cpuSeconds(*pid)
		}
		if err := by.allRun(); err != nil {
			return 0, err
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("wait for slot %s to acknowledge %s: %w", slot, inside, context.Cause(ctx))
		case <-tick.C:
		}
	}
}
