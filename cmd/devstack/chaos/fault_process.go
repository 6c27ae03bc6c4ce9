package chaos

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
)

// processFaults are those of Tidemark's own processes, and of the connections
// between them.
func processFaults() []Fault {
	streamers := func(r *Run) []*node { return r.streamer[:] }
	workers := func(r *Run) []*node {
		if len(r.workers) == 0 {
			return r.streamer[:]
		}
		return r.workers
	}
	// away ends one node of those, or freezes it, until the fault is healed.
	away := func(kind, on string, of func(*Run) []*node, end, back func(*node) error) Fault {
		return Fault{Kind: kind, Lasts: lasts(100, 4000), on: on, inject: func(_ context.Context, r *Run, rng *rand.Rand) (func(context.Context) error, error) {
			n := pick(rng, of(r))
			if n == nil {
				return nil, nil
			}
			return func(context.Context) error { return back(n) }, end(n)
		}}
	}
	return []Fault{
		away("worker killed", "workers", workers, (*node).kill, (*node).start),
		away("worker stopped", "workers", workers, (*node).stop, (*node).start),
		away("worker frozen", "workers", workers, (*node).freeze, (*node).thaw),
		away("streamer killed", "streamers", streamers, (*node).kill, (*node).start),
		away("streamer stopped", "streamers", streamers, (*node).stop, (*node).start),
		{Kind: "two streamers, then one", Lasts: lasts(1500, 4000), on: "streamers", inject: takeOver((*node).kill, (*node).stop)},
		// The other one takes the slot over while this one still believes that it
		// has it, and then goes on where it was.
		{Kind: "streamer frozen, then two", Lasts: lasts(9000, 15000), on: "streamers", inject: frozenOwner},
		{Kind: "Flight connections are cut", Lasts: lasts(0, 0), on: "flight", inject: func(_ context.Context, r *Run, _ *rand.Rand) (func(context.Context) error, error) {
			return nil, each(r.streamer[:], func(n *node) error { n.flight.Cut(); return nil })
		}},
		{Kind: "Flight is unreachable", Lasts: lasts(500, 4000), on: "flight", inject: func(_ context.Context, r *Run, _ *rand.Rand) (func(context.Context) error, error) {
			refuse := func(on bool) { _ = each(r.streamer[:], func(n *node) error { n.flight.Refuse(on); return nil }) }
			refuse(true)
			return plain(func() { refuse(false) }), nil
		}},
		{Kind: "settings changed", Lasts: lasts(100, 1000), on: "streamers", inject: changeSettings},
		{Kind: "everything killed", Lasts: lasts(500, 3000), on: "everything", inject: killEverything},
	}
}

// takeOver starts the other streamer, and ends one of the two, in one of the
// ways, when it is healed.
func takeOver(ways ...func(*node) error) func(context.Context, *Run, *rand.Rand) (func(context.Context) error, error) {
	return func(_ context.Context, r *Run, rng *rand.Rand) (func(context.Context) error, error) {
		end, gone := ways[rng.IntN(len(ways))], r.streamer[rng.IntN(2)]
		return func(context.Context) error { return end(gone) }, each(r.streamer[:], (*node).start)
	}
}

func frozenOwner(_ context.Context, r *Run, rng *rand.Rand) (func(context.Context) error, error) {
	owner := pick(rng, r.streamer[:])
	if owner == nil {
		return nil, nil
	}
	other := r.streamer[0]
	if other == owner {
		other = r.streamer[1]
	}
	err := errors.Join(owner.freeze(), other.start())
	return func(ctx context.Context) error {
		err := owner.thaw()
		// Both live for a moment; then one of them goes.
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(500+rng.IntN(1500)) * time.Millisecond):
		}
		gone := owner
		if rng.IntN(2) == 0 {
			gone = other
		}
		return errors.Join(err, gone.stop())
	}, err
}

// changeSettings ends the streamers, one way or another, and starts one with
// other settings. What was cut before is cut otherwise now.
func changeSettings(_ context.Context, r *Run, rng *rand.Rand) (func(context.Context) error, error) {
	end := (*node).stop
	if rng.IntN(2) == 0 {
		end = (*node).kill
	}
	if err := each(r.streamer[:], end); err != nil {
		return nil, err
	}
	r.drawSettings(rng)
	return func(context.Context) error {
		return errors.Join(r.settings.Write(r.pipe.Config), r.streamer[rng.IntN(2)].start())
	}, nil
}

// drawSettings chooses the sizes anew. Those that make the least segments come
// with many of them in flight: otherwise the settings would not carry the load,
// and nothing that is broken afterwards could be caught up with.
func (r *Run) drawSettings(rng *rand.Rand) {
	one := func(values ...any) any { return values[rng.IntN(len(values))] }
	drawn := pipeline.Settings{
		"segment.max_rows":       one(50, 200, 500, 1000, 5000),
		"segment.max_bytes":      one("32KiB", "128KiB", "256KiB"),
		"segment.max_age":        one("100ms", "500ms", "1s"),
		"ring.max_bytes":         one("256KiB", "1MiB", "4MiB", "16MiB"),
		"streamer.max_in_flight": one(2, 8, 64),
		"worker.concurrency":     one(1, 4, 8),
	}
	if drawn["segment.max_rows"] == 50 || drawn["segment.max_rows"] == 200 || drawn["segment.max_bytes"] == "32KiB" {
		drawn["streamer.max_in_flight"], drawn["worker.concurrency"] = 64, 8
	}
	maps.Copy(r.settings, drawn)
}

// killEverything kills Tidemark's processes, Temporal, the gateway and Postgres
// in a random order, and starts them in another.
func killEverything(_ context.Context, r *Run, rng *rand.Rand) (func(context.Context) error, error) {
	w := r.world
	w.servers.Lock()
	defer w.servers.Unlock()
	kills := []func() error{
		w.stack.Temporal.Kill, w.stack.S3.Kill, w.stack.Postgres.Kill,
		func() error { return each(r.nodes(), (*node).kill) },
	}
	rng.Shuffle(len(kills), func(i, j int) { kills[i], kills[j] = kills[j], kills[i] })
	for _, kill := range kills {
		if err := kill(); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) error {
		w.servers.Lock()
		defer w.servers.Unlock()
		starts := []func(context.Context) error{
			w.stack.Temporal.Start, w.stack.S3.Start, w.stack.Postgres.Start,
			func(context.Context) error {
				return each(append([]*node{r.streamer[rng.IntN(2)]}, r.workers...), (*node).start)
			},
		}
		rng.Shuffle(len(starts), func(i, j int) { starts[i], starts[j] = starts[j], starts[i] })
		for _, start := range starts {
			if err := start(ctx); err != nil {
				return err
			}
		}
		return nil
	}, nil
}
