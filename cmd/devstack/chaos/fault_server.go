package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
	"github.com/tidemark-cdc/tidemark/internal/pgtest"
)

// fastBound is how long Postgres may take to shut down with a receiver that
// cannot confirm everything. A slower one is reported as a failure of the fault.
const fastBound = 40 * time.Second

// serverFaults are those of Postgres and Temporal and of the way to them.
func serverFaults() []Fault {
	type inject = func(context.Context, *Run, *rand.Rand) (func(context.Context) error, error)
	restarted := func(stop func(*World) error) inject {
		return down(stop, func(ctx context.Context, w *World) error { return w.stack.Postgres.Start(ctx) })
	}
	through := func(way func(*World) *stack.Relay) (cut, gone inject) {
		cut = func(_ context.Context, r *Run, _ *rand.Rand) (func(context.Context) error, error) {
			way(r.world).Cut()
			return nil, nil
		}
		gone = func(_ context.Context, r *Run, _ *rand.Rand) (func(context.Context) error, error) {
			p := way(r.world)
			p.Refuse(true)
			return plain(func() { p.Refuse(false) }), nil
		}
		return cut, gone
	}
	postgresCut, postgresGone := through(func(w *World) *stack.Relay { return w.postgres })
	temporalCut, temporalGone := through(func(w *World) *stack.Relay { return w.temporal })
	return []Fault{
		{Kind: "walsender terminated", on: "postgres", inject: terminateWalsender},
		{Kind: "Postgres restarted, fast", Lasts: lasts(0, 2000), on: "postgres", inject: restarted(stopFast)},
		{Kind: "Postgres restarted, immediate", Lasts: lasts(0, 2000), on: "postgres", inject: restarted(func(w *World) error { return w.stack.Postgres.Crash() })},
		{Kind: "Postgres killed", Lasts: lasts(0, 2000), on: "postgres", inject: restarted(func(w *World) error { return w.stack.Postgres.Kill() })},
		{Kind: "Postgres connections are cut", on: "postgres", inject: postgresCut},
		{Kind: "Postgres is unreachable", Lasts: lasts(500, 5000), on: "postgres", inject: postgresGone},
		{Kind: "Postgres' clock jumps", Lasts: lasts(1500, 4000), on: "clock", inject: jump},
		{Kind: "Temporal restarted", Lasts: lasts(0, 2000), on: "temporal", inject: temporalDown(stopTemporal)},
		{Kind: "Temporal killed", Lasts: lasts(0, 8000), on: "temporal", inject: temporalDown(func(w *World) error { return w.stack.Temporal.Kill() })},
		{Kind: "Temporal connections are cut", on: "temporal", inject: temporalCut},
		{Kind: "Temporal is unreachable", Lasts: lasts(500, 8000), on: "temporal", inject: temporalGone},
	}
}

// down stops a server in a way, and starts it when it is healed.
func down(stop func(*World) error, start func(context.Context, *World) error) func(context.Context, *Run, *rand.Rand) (func(context.Context) error, error) {
	return func(_ context.Context, r *Run, _ *rand.Rand) (func(context.Context) error, error) {
		w := r.world
		w.servers.Lock()
		defer w.servers.Unlock()
		return func(ctx context.Context) error {
			w.servers.Lock()
			defer w.servers.Unlock()
			return start(ctx, w)
		}, stop(w)
	}
}

func temporalDown(stop func(*World) error) func(context.Context, *Run, *rand.Rand) (func(context.Context) error, error) {
	return down(stop, func(ctx context.Context, w *World) error { return w.stack.Temporal.Start(ctx) })
}

func stopTemporal(w *World) error { return w.stack.Temporal.Stop() }

// temporalAway stops Temporal for long.
func temporalAway(d time.Duration) Fault {
	return Fault{
		Kind: "Temporal stopped for " + d.String(), Lasts: [2]time.Duration{d, d}, on: "temporal",
		inject: temporalDown(stopTemporal),
	}
}

// stopFast waits for the receivers, which have to let the server go.
func stopFast(w *World) error {
	server := w.stack.Postgres.Server()
	if server == nil || !w.stack.Postgres.Running() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), fastBound)
	defer cancel()
	if err := server.Signal(pgtest.Fast); err != nil {
		return err
	}
	if err := server.Wait(ctx); err != nil && ctx.Err() != nil {
		return errors.Join(fmt.Errorf("Postgres has not ended within %s of a fast shutdown", fastBound), server.Kill())
	}
	return nil
}

func terminateWalsender(ctx context.Context, r *Run, _ *rand.Rand) (func(context.Context) error, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, r.world.url(r.database, false))
	if err != nil {
		return nil, nil // it is down by another fault
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, _ = conn.Exec(ctx, "select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = $1 and active_pid is not null", r.slot)
	return nil, nil
}

// jump sets Postgres' clock to another time, so that commit times go over
// midnight, forwards or backwards. It is set right when it is healed.
func jump(_ context.Context, r *Run, rng *rand.Rand) (func(context.Context) error, error) {
	offsets := []string{"+26h", "-26h", "+90s", "-90s", "+400d"}
	c := r.world.clock
	return func(context.Context) error { return c.set("+0") }, c.set(offsets[rng.IntN(len(offsets))])
}
