package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
)

// History is a short life of a pipeline: what it starts with, and what happens
// to it.
type History struct {
	Workers  int
	Settings pipeline.Settings
	// Seed chooses the details of faults and transactions.
	Seed  uint64
	Steps []Step
}

// Step is one thing that happens: a commit, something broken or mended, or a
// pause.
type Step struct {
	// Commit is the name of a shape, N about how many changes it makes.
	Commit string
	N      int
	// Break is a kind of fault, which lasts until it is mended: by Mend, by
	// another fault of the same thing, or at the end.
	Break string
	// Mend is a kind to mend; "all" is all of them.
	Mend string
	// Pause lets things go on for a while.
	Pause time.Duration
	// Until, with a Pause, ends it early: when this has happened since the last
	// commit, or the last thing that was broken or mended. That it does not come is
	// no error: with guards whole there may be nothing to come.
	Until string
}

// What a Step may wait for.
const (
	UntilUpload    = "upload"    // an upload of a segment has begun
	UntilObject    = "object"    // the lake has another object
	UntilAck       = "ack"       // the ack has moved
	UntilStreaming = "streaming" // another connection has the slot
)

// String is the step in a line.
func (s Step) String() string {
	switch {
	case s.Commit != "":
		return fmt.Sprintf("commit %q of %d", s.Commit, s.N)
	case s.Break != "":
		return fmt.Sprintf("break %q", s.Break)
	case s.Mend != "":
		return fmt.Sprintf("mend %q", s.Mend)
	case s.Until != "":
		return fmt.Sprintf("until %s, at most %s", s.Until, s.Pause)
	default:
		return fmt.Sprintf("pause %s", s.Pause)
	}
}

// String is the history, a step in a line.
func (h History) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "workers %d, seed %d, settings %v\n", h.Workers, h.Seed, h.Settings)
	for _, s := range h.Steps {
		fmt.Fprintf(&b, "  %s\n", s)
	}
	return b.String()
}

// settleBound is how long a history may take to be all in the lake after its
// faults are mended: uploads are tried again after a minute at most, and a
// worker that was killed is given up after half a minute.
const settleBound = 150 * time.Second

// Play plays a history on a pipeline of its own, mends everything, waits until
// all is acknowledged, and checks. An error is a history that did not come to
// its end: one more way to be wrong, if what it says is Tidemark's.
func (w *World) Play(ctx context.Context, h History) (_ *Verdict, err error) {
	r, err := w.NewRun(ctx, Layout{Workers: h.Workers}, h.Settings)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close(ctx)) }()
	p := &play{run: r, rng: rand.New(rand.NewPCG(h.Seed, 0)), writer: newWriter(r, h.Seed)}
	// Whatever happens, the next history gets a whole world.
	defer func() { err = errors.Join(err, p.mend(ctx, "all")) }()
	// What happens to a process that has not come so far yet is no matter for
	// guards; in the middle of a history it comes to that often enough.
	if err := r.streaming(ctx, settleBound); err != nil {
		return nil, err
	}
	for _, s := range h.Steps {
		if err := p.step(ctx, s); err != nil {
			return nil, fmt.Errorf("%s: %w", s, err)
		}
	}
	if err := p.mend(ctx, "all"); err != nil {
		return nil, err
	}
	if err := r.revive(); err != nil {
		return nil, err
	}
	if _, err := r.Settle(ctx, settleBound); err != nil {
		return nil, err
	}
	if err := r.Finish(); err != nil {
		return nil, err
	}
	return r.Check(ctx)
}

// play is a history that is being played.
type play struct {
	run    *Run
	rng    *rand.Rand
	writer *Writer
	broken []broken
	// since is when the last step began that was no pause, before what there was
	// then.
	since  time.Time
	before state
}

type broken struct {
	fault Fault
	heal  func(context.Context) error
}

func (p *play) step(ctx context.Context, s Step) error {
	if s.Pause == 0 {
		p.since, p.before = time.Now(), p.run.state(ctx)
	}
	switch {
	case s.Commit != "":
		for _, shape := range shapes() {
			if shape.Name == s.Commit {
				// With Postgres down it fails, and nothing is committed.
				_ = p.writer.Commit(ctx, shape, s.N)
				return nil
			}
		}
		return errors.New("there is no such shape")
	case s.Break != "":
		f, ok := Kind(s.Break)
		if !ok {
			return errors.New("there is no such fault")
		}
		if err := p.apart(ctx, f); err != nil {
			return err
		}
		heal, err := f.Inject(ctx, p.run, p.rng)
		p.broken = append(p.broken, broken{f, heal})
		return err
	case s.Mend != "":
		return p.mend(ctx, s.Mend)
	}
	ctx, cancel := context.WithTimeout(ctx, s.Pause)
	defer cancel()
	for ctx.Err() == nil && !p.came(ctx, s.Until) {
		wait(ctx, 20*time.Millisecond)
	}
	return nil
}

// came says whether what a step waits for has come.
func (p *play) came(ctx context.Context, what string) bool {
	switch what {
	case UntilUpload:
		return len(p.run.world.stack.Faults.Requests(func(r stack.Request) bool {
			return r.At.After(p.since) && stack.PutsOfSegments(r) && strings.Contains(r.Path, "/"+p.run.name+"/")
		})) > 0
	case UntilAck:
		return p.run.sampler.ack() > p.before.end
	case UntilObject:
		return p.run.state(ctx).objects > p.before.objects
	case UntilStreaming:
		pid := p.run.state(ctx).walsender
		return pid != 0 && pid != p.before.walsender
	}
	return false
}

// apart mends what cannot be broken together with f.
func (p *play) apart(ctx context.Context, f Fault) error {
	var errs []error
	for _, b := range append([]broken(nil), p.broken...) {
		if b.fault.clashes(f, p.run) {
			errs = append(errs, p.mend(ctx, b.fault.Kind))
		}
	}
	return errors.Join(errs...)
}

func (p *play) mend(ctx context.Context, kind string) error {
	var errs []error
	var left []broken
	for _, b := range p.broken {
		if kind != "all" && b.fault.Kind != kind {
			left = append(left, b)
			continue
		}
		errs = append(errs, b.heal(context.WithoutCancel(ctx)))
	}
	p.broken = left
	return errors.Join(errs...)
}
