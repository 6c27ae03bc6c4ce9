package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/lakecheck"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/internal/change"
)

// Layout says which processes a run has.
type Layout struct {
	// Workers besides the streamer; 0 makes the streamer tidemark run, which has
	// a worker in it.
	Workers int
}

// Run is one pipeline of a World.
type Run struct {
	world    *World
	name     string
	database string
	slot     string
	settings pipeline.Settings // the scheduler's own
	pipe     *pipeline.Pipeline
	lake     *lakecheck.Lake
	truth    *Truth
	sampler  *sampler
	streamer [2]*node
	workers  []*node

	// stopped ends the supervisor.
	stopped chan struct{}
	group   sync.WaitGroup

	mu sync.Mutex
	// exits are processes that ended by themselves.
	exits []Exit
}

// Exit is a process that ended without having been told to.
type Exit struct {
	Process string `json:"process"`
	Status  int    `json:"status"`
	// Last is the last line that it wrote.
	Last string    `json:"last"`
	At   time.Time `json:"at"`
}

// NewRun makes a database with the writer's tables and a pipeline for it, and
// starts its processes.
func (w *World) NewRun(ctx context.Context, layout Layout, extra pipeline.Settings) (_ *Run, err error) {
	w.runs++
	name := fmt.Sprintf("chaos%d", w.runs)
	r := &Run{world: w, name: name, database: name, stopped: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close(ctx))
		}
	}()
	dir := filepath.Join(w.Dir(), name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := w.exec(ctx, "postgres", "create database "+name); err != nil {
		return nil, err
	}
	if err := w.exec(ctx, name, writerTables); err != nil {
		return nil, err
	}
	// The truth's slot first: it must have everything that the pipeline's has.
	if r.truth, err = newTruth(ctx, w.url(name, false), "truth_"+name, filepath.Join(dir, "truth")); err != nil {
		return nil, err
	}
	r.settings = pipeline.For(w.stack, name, pipeline.Settings{
		"postgres.url":              w.url(name, true),
		"postgres.messages":         true,
		"temporal.address":          w.temporal.Address(),
		"segment.max_rows":          500,
		"segment.max_bytes":         "256KiB",
		"segment.max_age":           "500ms",
		"ring.max_bytes":            "4MiB",
		"streamer.shutdown_timeout": "5s",
		"worker.drain_timeout":      "5s",
		"lake.timeout":              "10s",
	})
	for k, v := range extra {
		r.settings[k] = v
	}
	r.slot = r.settings.Slot()
	r.pipe = &pipeline.Pipeline{Binary: w.opt.Binary, Config: filepath.Join(dir, "tidemark.yaml"), Env: w.stack.S3.Env(), Logs: dir}
	if err := r.settings.Write(r.pipe.Config); err != nil {
		return nil, err
	}
	if r.lake, err = lakecheck.Open(filepath.Join(w.stack.S3.Folder(), name)); err != nil {
		return nil, err
	}
	if err := r.pipe.Setup(ctx); err != nil {
		return nil, err
	}
	verb := "streamer"
	if layout.Workers == 0 {
		verb = "run"
	}
	for i := range r.streamer {
		if r.streamer[i], err = newNode(r, fmt.Sprintf("%s%d", verb, i+1), verb); err != nil {
			return nil, err
		}
	}
	for i := range layout.Workers {
		n, err := newNode(r, fmt.Sprintf("worker%d", i+1), "worker")
		if err != nil {
			return nil, err
		}
		r.workers = append(r.workers, n)
	}
	for _, n := range append([]*node{r.streamer[0]}, r.workers...) {
		if err := n.start(); err != nil {
			return nil, err
		}
	}
	r.sampler = newSampler(r)
	r.group.Go(r.supervise)
	r.group.Go(func() { r.sampler.sample(r.stopped) })
	return r, nil
}

// nodes are all processes that a run can have.
func (r *Run) nodes() []*node {
	var all []*node
	for _, n := range append(r.streamer[:], r.workers...) {
		if n != nil {
			all = append(all, n)
		}
	}
	return all
}

// supervise starts what has ended by itself again, as a supervisor would.
func (r *Run) supervise() {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-r.stopped:
			return
		case <-tick.C:
		}
		for _, n := range r.nodes() {
			exit, ended := n.revive()
			if !ended {
				continue
			}
			r.mu.Lock()
			r.exits = append(r.exits, exit)
			r.mu.Unlock()
			r.world.opt.Progress(fmt.Sprintf("%s ended by itself with status %d: %s", exit.Process, exit.Status, exit.Last))
		}
	}
}

// revive makes sure that at least one streamer and all workers are to run.
func (r *Run) revive() error {
	var errs []error
	if !r.streamer[0].isWanted() && !r.streamer[1].isWanted() {
		errs = append(errs, r.streamer[0].start())
	}
	return errors.Join(append(errs, each(r.workers, (*node).start))...)
}

// Exits are the processes that ended by themselves so far.
func (r *Run) Exits() []Exit {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Exit(nil), r.exits...)
}

// connect is an ordinary connection to the run's database, which waits for a
// Postgres that is being restarted.
func (r *Run) connect(ctx context.Context) (*pgx.Conn, error) {
	return dial(ctx, r.world.url(r.database, false))
}

func dial(ctx context.Context, url string) (*pgx.Conn, error) {
	for {
		conn, err := pgx.Connect(ctx, url)
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("connect to Postgres: %w", errors.Join(err, context.Cause(ctx)))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// streaming waits until the slot is in use.
func (r *Run) streaming(ctx context.Context, bound time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	for r.state(ctx).walsender == 0 {
		if !wait(ctx, 50*time.Millisecond) {
			return fmt.Errorf("slot %s is not in use after %s\n%s", r.slot, bound, r.logs())
		}
	}
	return nil
}

// state is what there is at a moment; what Postgres does not say, while it is
// away, is zero.
type state struct {
	end       change.LSN // of the WAL
	walsender int        // the process that has the slot
	objects   int        // of segments, in the lake
}

func (r *Run) state(ctx context.Context) (s state) {
	if keys, err := objects(r.lake.Folder()); err == nil {
		s.objects = len(keys)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, r.world.url(r.database, false))
	if err != nil {
		return s
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var end string
	err = conn.QueryRow(ctx, `select pg_current_wal_insert_lsn()::text, coalesce(active_pid, 0)
		from pg_replication_slots where slot_name = $1`, r.slot).Scan(&end, &s.walsender)
	if err == nil {
		s.end, _ = change.ParseLSN(end)
	}
	return s
}

// Settle waits until everything that is committed by now is acknowledged, and
// returns how long that took. All faults must be healed.
func (r *Run) Settle(ctx context.Context, bound time.Duration) (time.Duration, error) {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	conn, err := r.connect(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	end, err := pipeline.End(ctx, conn)
	if err == nil {
		before := len(r.Exits())
		err = pipeline.WaitAck(ctx, conn, r.slot, end, func(int64) error { return r.hopeless(before) })
	}
	if err != nil {
		return 0, fmt.Errorf("%w\n%s", err, r.logs())
	}
	return time.Since(begin), nil
}

// hopeless is an error when processes end again and again, although nothing is
// broken any more: a streamer that stops rather than guess does so for ever.
func (r *Run) hopeless(before int) error {
	if exits := r.Exits(); len(exits) >= before+5 {
		last := exits[len(exits)-1]
		return fmt.Errorf("processes end by themselves again and again, %s with status %d: %s", last.Process, last.Status, last.Last)
	}
	return nil
}

// logs is the end of what each process has written.
func (r *Run) logs() string {
	var b strings.Builder
	for _, n := range r.nodes() {
		if p := n.current(); p != nil {
			fmt.Fprintf(&b, "the end of %s (running: %v):\n%s\n", p.Log(), p.Running(), p.Tail(12))
		}
	}
	return b.String()
}

// Finish ends all processes in order, and is an error if one does not end well.
func (r *Run) Finish() error {
	var errs []error
	for _, n := range r.nodes() {
		errs = append(errs, n.stop())
	}
	return errors.Join(errs...)
}

// Close kills what still runs and drops the slots and the database.
func (r *Run) Close(ctx context.Context) error {
	select {
	case <-r.stopped:
		return nil
	default:
		close(r.stopped)
	}
	r.group.Wait()
	var errs []error
	for _, n := range r.nodes() {
		errs = append(errs, n.close())
	}
	if r.lake != nil {
		errs = append(errs, r.lake.Close())
	}
	if r.truth != nil {
		r.truth.close()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	conn, err := dial(ctx, r.world.url("postgres", false))
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	defer conn.Close(ctx)
	for _, s := range []string{
		"select pg_terminate_backend(active_pid) from pg_replication_slots where active and database = '" + r.database + "'",
		"select pg_drop_replication_slot(slot_name) from pg_replication_slots where database = '" + r.database + "'",
		"drop database if exists " + r.database + " with (force)",
	} {
		// A backend that was told to end holds its slot for a moment more.
		for {
			_, err := conn.Exec(ctx, s)
			if err == nil {
				break
			}
			if ctx.Err() != nil || conn.IsClosed() {
				return errors.Join(append(errs, fmt.Errorf("%s: %w", s, err))...)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return errors.Join(errs...)
}
