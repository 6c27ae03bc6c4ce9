package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/load"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/internal/change"
)

// Campaign is a long run under a steady load.
type Campaign struct {
	// Duration of the part with faults.
	Duration time.Duration
	// Seed chooses kinds, moments and transactions. What the machine does in
	// between is not chosen, so a seed does not repeat a campaign to the letter.
	Seed uint64
	// Rate is about how many row changes per second are written.
	Rate int
	// Only, if not empty, are the kinds of faults to use.
	Only []string
	// TemporalAway, if not 0, is for how long Temporal is stopped once, on top of
	// Duration. That is the first fault: it leaves hundreds of thousands of
	// changes to catch up with, for which settings that a later fault may choose
	// are too small.
	TemporalAway time.Duration
	// AfterKill is the rate of changes under which, at the end, everything is
	// killed once more, and the time is taken until all is caught up. 0 leaves
	// it out.
	AfterKill int
	Options
}

// recoverBound is how long the ack may take, beside the time that the fault
// lasted, to pass what was committed when it ended. Uploads are tried again
// after a minute at most.
const recoverBound = 4 * time.Minute

// campaign is a Campaign that runs.
type campaign struct {
	Campaign
	run    *Run
	rng    *rand.Rand
	deck   []Fault
	report *Report
}

// Run makes a world, breaks it until the time is over, and checks. The report
// is there also if err is not nil, for as far as it has come. Without a verdict
// that is good the data stay where the report says.
func (c Campaign) Run(ctx context.Context) (report *Report, err error) {
	report = newReport(c)
	w, err := NewWorld(ctx, c.Options)
	if err != nil {
		return report, err
	}
	report.Dir = w.Dir()
	defer func() { err = errors.Join(err, w.Close()) }()
	r, err := w.NewRun(ctx, Layout{Workers: 2}, nil)
	if err != nil {
		return report, err
	}
	m := &campaign{Campaign: c, run: r, rng: rand.New(rand.NewPCG(c.Seed, 0)), report: report}
	defer func() { err = errors.Join(err, r.Close(ctx)) }()
	return report, m.all(ctx)
}

func (c *campaign) all(ctx context.Context) error {
	if err := load.Create(ctx, c.run.world.url(c.run.database, false)); err != nil {
		return err
	}
	l := load.Start(ctx, load.Config{
		URL: c.run.world.url(c.run.database, false), Seed: c.Seed, Rate: c.Rate, Largest: 3000,
	})
	background, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { c.write(background) })
	group.Go(func() { c.readTruth(background) })
	err := c.breakThings(ctx, l)
	if err == nil && c.AfterKill > 0 {
		err = c.afterKill(ctx)
	}
	stop()
	group.Wait()
	_, lerr := l.Stop()
	if err := errors.Join(err, lerr); err != nil {
		return err
	}
	return c.finish(ctx, l)
}

// write commits transactions of every shape, one after the other, beside the
// load.
func (c *campaign) write(ctx context.Context) {
	w := newWriter(c.run, c.Seed)
	all := shapes()
	for i := 0; ctx.Err() == nil; i++ {
		n := 1 + w.rng.IntN(60)
		if i%100 == 99 {
			n = 20000 // more than a small ring holds, and than a segment
		}
		if err := w.Commit(ctx, all[w.rng.IntN(len(all))], n); err != nil {
			c.report.failedWrites.Add(1)
		} else {
			c.report.writes.Add(1)
		}
		wait(ctx, time.Duration(w.rng.IntN(600))*time.Millisecond)
	}
}

// readTruth keeps the truth's slot from holding all of the WAL.
func (c *campaign) readTruth(ctx context.Context) {
	for wait(ctx, 10*time.Second) {
		_ = c.run.truth.read(ctx) // what fails now is read later
	}
}

// breakThings goes from round to round until the time is over.
func (c *campaign) breakThings(ctx context.Context, l *load.Load) error {
	if err := c.recovered(ctx, 0); err != nil {
		return fmt.Errorf("before the first fault: %w", err)
	}
	begin := time.Now()
	if c.TemporalAway > 0 {
		if err := c.round(ctx, 0, []Fault{temporalAway(c.TemporalAway)}); err != nil {
			return err
		}
	}
	for n, until := 1, time.Now().Add(c.Duration); time.Now().Before(until); n++ {
		if err := errors.Join(ctx.Err(), l.Err()); err != nil {
			return err
		}
		if err := c.round(ctx, n, c.choose()); err != nil {
			return err
		}
	}
	c.report.Took = time.Since(begin)
	return nil
}

// choose draws one to three faults that can be there at once.
func (c *campaign) choose() []Fault {
	var faults []Fault
	for range []int{1, 1, 1, 2, 2, 3}[c.rng.IntN(6)] {
		f := c.draw()
		clash := false
		for _, g := range faults {
			clash = clash || f.clashes(g, c.run)
		}
		if clash {
			c.deck = append([]Fault{f}, c.deck...) // another time
			continue
		}
		faults = append(faults, f)
	}
	return faults
}

// round breaks all of faults, mends them, and waits until what was committed by
// then is acknowledged. How long that takes is put down to the fault if it was
// alone.
func (c *campaign) round(ctx context.Context, n int, faults []Fault) error {
	var heals []func(context.Context) error
	var last time.Duration
	var names []string
	for _, f := range faults {
		heal, err := f.Inject(ctx, c.run, c.rng)
		if err != nil {
			return fmt.Errorf("inject %q: %w", f.Kind, err)
		}
		heals = append(heals, heal)
		names = append(names, f.Kind)
		d := f.Lasts[0]
		if f.Lasts[1] > d {
			d += time.Duration(c.rng.Int64N(int64(f.Lasts[1] - d)))
		}
		last = max(last, d)
		c.report.injected(f.Kind)
	}
	wait(ctx, last)
	for i, heal := range heals {
		if err := heal(ctx); err != nil {
			return fmt.Errorf("end %q: %w", names[i], err)
		}
	}
	healed := time.Now()
	if err := c.recovered(ctx, last); err != nil {
		return fmt.Errorf("after %s: %w", strings.Join(names, ", "), err)
	}
	took := time.Since(healed)
	c.report.recovered(names, took)
	c.Progress(fmt.Sprintf("%3d  %-70s %5.1f s, caught up after %5.1f s; %d faults, %d changes committed",
		n, strings.Join(names, " + "), last.Seconds(), took.Seconds(), c.report.faults(), c.run.truth.Rows()))
	wait(ctx, time.Duration(c.rng.IntN(1500))*time.Millisecond)
	return nil
}

// draw takes the next kind from a shuffled deck of all, so that none is left
// out.
func (c *campaign) draw() Fault {
	if len(c.deck) == 0 {
		for _, f := range Faults() {
			if len(c.Only) == 0 || slices.Contains(c.Only, f.Kind) {
				c.deck = append(c.deck, f)
			}
		}
		c.rng.Shuffle(len(c.deck), func(i, j int) { c.deck[i], c.deck[j] = c.deck[j], c.deck[i] })
	}
	f := c.deck[len(c.deck)-1]
	c.deck = c.deck[:len(c.deck)-1]
	return f
}

// recovered waits until the ack has passed the end of what is committed now.
// lasted is how long nothing may have moved: there is that much to catch up with.
func (c *campaign) recovered(ctx context.Context, lasted time.Duration) error {
	// At least one streamer must be there: a fault may have ended the last one.
	if err := c.run.revive(); err != nil {
		return err
	}
	bound := recoverBound + lasted
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	var target change.LSN
	for target == 0 {
		conn, err := c.run.connect(ctx)
		if err != nil {
			return err
		}
		var end string
		if end, err = pipeline.End(ctx, conn); err == nil {
			target, err = change.ParseLSN(end)
		}
		conn.Close(ctx)
		if err != nil && ctx.Err() != nil {
			return err
		}
	}
	before := len(c.run.Exits())
	for c.run.sampler.ack() < target {
		if err := c.run.hopeless(before); err != nil {
			return err
		}
		if !wait(ctx, 50*time.Millisecond) {
			return fmt.Errorf("the ack stands at %s after %s, and %s was committed before\n%s", c.run.sampler.ack(), bound, target, c.run.logs())
		}
	}
	return nil
}

// afterKill writes as fast as AfterKill says, kills everything, starts it, goes
// on writing for a while, and takes the time until all that was committed by
// its end is acknowledged.
func (c *campaign) afterKill(ctx context.Context) error {
	c.Progress(fmt.Sprintf("everything killed under %d changes per second", c.AfterKill))
	l := load.Start(ctx, load.Config{
		URL: c.run.world.url(c.run.database, false), Seed: c.Seed + 1, Rate: c.AfterKill, Sessions: 8, Largest: 2000, First: 100,
	})
	begin := time.Now()
	wait(ctx, 20*time.Second)
	before, spent := l.Counts().Total(), time.Since(begin)
	heal, err := killEverything(ctx, c.run, c.rng)
	if err == nil {
		err = heal(ctx)
	}
	started := time.Now()
	if err == nil {
		wait(ctx, 5*time.Second)
	}
	_, lerr := l.Stop()
	if err := errors.Join(err, lerr); err != nil {
		return err
	}
	if err := c.recovered(ctx, 0); err != nil {
		return fmt.Errorf("after everything was killed under load: %w", err)
	}
	c.report.AfterKill = &AfterKill{
		Rate: int(float64(before) / spent.Seconds()), Changes: l.Counts().Total(), CaughtUp: time.Since(started),
	}
	c.Progress(fmt.Sprintf("caught up %.1f s after everything was started again, having written %d changes per second",
		c.report.AfterKill.CaughtUp.Seconds(), c.report.AfterKill.Rate))
	return nil
}

// finish drains, stops and checks.
func (c *campaign) finish(ctx context.Context, l *load.Load) error {
	c.Progress("the load has stopped; draining")
	if _, err := c.run.Settle(ctx, recoverBound); err != nil {
		return err
	}
	if err := c.run.Finish(); err != nil {
		return err
	}
	c.report.Exits = c.run.Exits()
	c.report.Stall, c.report.StallAt = c.run.sampler.longest()
	c.Progress("checking")
	v, err := c.run.Check(ctx)
	if err != nil {
		return err
	}
	c.report.Verdict = v
	// The load has counted too, another witness.
	got, err := c.run.lake.Rows(ctx)
	if err != nil {
		return err
	}
	for kind, n := range l.Counts() {
		if c.AfterKill == 0 && got[kind] != n {
			v.Other++
			v.problem("the load committed %d of %s %s, the lake has %d", n, kind.Table, kind.Operation, got[kind])
		}
	}
	return nil
}

// wait waits for d; false says that ctx ended before.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
