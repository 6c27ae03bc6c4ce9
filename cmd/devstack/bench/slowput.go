package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
)

// slowBy is how much longer a slow store takes for each PUT.
const slowBy = 100 * time.Millisecond

// slowRows is how many rows the backlog has, also if Quick: in a short one the few
// writes that a start and an end take one after the other are most of what it
// costs.
const slowRows = 1_000_000

// slowPut drains a backlog as case b has from a store that takes longer for each
// PUT, the lake's own records included, and from one that does not.
func (b *bench) slowPut(ctx context.Context) (err error) {
	slow, err := b.slowStore(slowBy)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, slow.Close()) }()
	plain, err := b.slowStore(0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plain.Close()) }()

	defer func() { err = errors.Join(err, b.dropSlots(ctx)) }()
	through := func(name string, store *stack.FaultProxy) (lane, error) {
		return b.newPipeline(ctx, name, narrow, pipeline.Settings{"segment.max_age": "200ms", "lake.endpoint": store.Endpoint()})
	}
	var lanes [][2]lane
	for i := range b.size.runs {
		with, err := through(fmt.Sprintf("slow-put-%d", i+1), slow)
		if err != nil {
			return err
		}
		without, err := through(fmt.Sprintf("plain-put-%d", i+1), plain)
		if err != nil {
			return err
		}
		lanes = append(lanes, [2]lane{with, without})
	}
	inside, err := b.fill(ctx, narrow, slowRows, 1000, 32)
	if err != nil {
		return err
	}
	for i, pair := range lanes {
		var took [2]drained
		for k := range pair {
			turn := (k + i) % 2 // neither always comes first
			if took[turn], err = b.drainBy(ctx, pair[turn], inside, inOne...); err != nil {
				return err
			}
		}
		ratio := took[0].wall.Seconds() / took[1].wall.Seconds()
		b.say("slow_put run %d: %.2fs, without %s per PUT %.2fs, ratio %.2f; peak %.0f MiB; load %s",
			i+1, took[0].wall.Seconds(), slowBy, took[1].wall.Seconds(), ratio, took[0].used[0].Anon, loadAverage())
		b.report.Add("drain.b.slow_put_ratio", "ratio", "the same with no time added to a PUT", ratio)
		b.addMemory("drain.b.slow_put_", took[0].used[0].Memory)
	}
	return nil
}

// slowStore is a way to the store on which each PUT takes longer. The caller
// closes it.
func (b *bench) slowStore(by time.Duration) (*stack.FaultProxy, error) {
	p, err := stack.NewFaultProxy(b.stack.S3.Address())
	if err == nil && by > 0 {
		p.Delay(stack.Puts(""), by)
	}
	return p, err
}
