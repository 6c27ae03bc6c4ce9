package chaos

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Fault is one kind of thing to break.
type Fault struct {
	Kind string
	// Lasts bounds how long a campaign leaves it broken.
	Lasts [2]time.Duration
	// inject breaks it and returns what mends it, which may be nil if that has
	// happened by then. rng chooses the details.
	inject func(ctx context.Context, r *Run, rng *rand.Rand) (heal func(context.Context) error, err error)
	// on is what it breaks. Two faults of the same are not injected at once.
	on string
}

// Inject breaks it. heal is never nil.
func (f Fault) Inject(ctx context.Context, r *Run, rng *rand.Rand) (heal func(context.Context) error, err error) {
	heal, err = f.inject(ctx, r, rng)
	if heal == nil {
		heal = func(context.Context) error { return nil }
	}
	return heal, err
}

// clashes says that two faults break the same, so that the one is mended before
// the other is injected.
func (f Fault) clashes(g Fault, r *Run) bool {
	thing := func(f Fault) string {
		if f.on == "workers" && len(r.workers) == 0 {
			return "streamers" // tidemark run is both
		}
		return f.on
	}
	return thing(f) == thing(g) || f.on == "everything" || g.on == "everything"
}

// Faults are all kinds.
func Faults() []Fault {
	var all []Fault
	for _, list := range [][]Fault{storeFaults(), processFaults(), serverFaults(), operatorFaults()} {
		all = append(all, list...)
	}
	return all
}

// Kind finds a fault.
func Kind(name string) (Fault, bool) {
	for _, f := range Faults() {
		if f.Kind == name {
			return f, true
		}
	}
	return Fault{}, false
}

// lasts is from a to b, in milliseconds.
func lasts(a, b int) [2]time.Duration {
	return [2]time.Duration{time.Duration(a) * time.Millisecond, time.Duration(b) * time.Millisecond}
}

// plain is a heal that cannot fail.
func plain(f func()) func(context.Context) error {
	return func(context.Context) error { f(); return nil }
}

// pick is a random one of those that run, nil if none does.
func pick(rng *rand.Rand, nodes []*node) *node {
	var running []*node
	for _, n := range nodes {
		if n != nil && n.running() {
			running = append(running, n)
		}
	}
	if len(running) == 0 {
		return nil
	}
	return running[rng.IntN(len(running))]
}

// each does the same to several nodes.
func each(nodes []*node, do func(*node) error) error {
	var errs []error
	for _, n := range nodes {
		if n != nil {
			errs = append(errs, do(n))
		}
	}
	return errors.Join(errs...)
}
