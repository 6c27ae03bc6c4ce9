package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/lakecheck"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/load"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/tally"
)

// Bound is how long a step of a test may take before the test fails.
const Bound = 3 * time.Minute

// name is the pipeline's, and its prefix in the bucket.
const name = "e2e"

// Options say which stack and which pipeline a test wants.
type Options struct {
	// Postgres is 15 or 18.
	Postgres int
	// PostgresSettings, PostgresEnv and PostgresFiles are the server's; see
	// pgtest.Options.
	PostgresSettings map[string]string
	PostgresEnv      []string
	PostgresFiles    map[string]string
	// S3 is the gateway.
	S3 stack.S3Options
	// Settings are added to the pipeline's configuration. Segments are small
	// (1,000 rows, 500 ms) unless they say otherwise.
	Settings pipeline.Settings
	// NoSetup leaves out the load's tables and tidemark setup.
	NoSetup bool
	// TemporalMemory is for tests that never stop Temporal.
	TemporalMemory bool
}

// Harness is a stack and a pipeline for one test. Its methods are for the
// test's own goroutine, unless they say otherwise.
type Harness struct {
	Stack    *stack.Stack
	Pipeline *pipeline.Pipeline
	Settings pipeline.Settings

	t     *testing.T
	ctx   context.Context
	lake  *lakecheck.Lake
	conn  *pgx.Conn
	procs []*Proc
}

// New starts a stack, with a FaultProxy before its gateway, creates the tables
// of package load and runs tidemark setup. Everything ends with the test.
func New(t *testing.T, opt Options) *Harness {
	t.Helper()
	h := &Harness{t: t, ctx: t.Context()}
	s, err := stack.Start(h.ctx, stack.Options{
		Dir:      h.folder(),
		Faults:   true,
		S3:       opt.S3,
		Temporal: stack.TemporalOptions{NoUI: true, Memory: opt.TemporalMemory},
		Postgres: stack.PostgresOptions{Version: opt.Postgres, Settings: opt.PostgresSettings, Env: opt.PostgresEnv, Files: opt.PostgresFiles},
	})
	if err != nil {
		t.Fatalf("start the stack: %v", err)
	}
	h.Stack = s
	t.Cleanup(h.close)

	h.Settings = pipeline.For(s, name, pipeline.Settings{"segment.max_rows": 1000, "segment.max_age": "500ms"})
	for k, v := range opt.Settings {
		h.Settings[k] = v
	}
	config := filepath.Join(s.Dir(), "tidemark.yaml")
	if err := h.Settings.Write(config); err != nil {
		t.Fatal(err)
	}
	h.Pipeline = &pipeline.Pipeline{Binary: os.Getenv(binaryVariable), Config: config, Env: s.S3.Env(), Logs: s.Dir()}
	if h.lake, err = lakecheck.Open(filepath.Join(s.S3.Folder(), name)); err != nil {
		t.Fatal(err)
	}
	if !opt.NoSetup {
		if err := load.Create(h.ctx, s.Postgres.URL()); err != nil {
			t.Fatal(err)
		}
		h.Setup()
	}
	return h
}

// folder is the test's own, empty for a temporary one.
func (h *Harness) folder() string {
	keep := os.Getenv("DEVSTACK_KEEP")
	if keep == "" {
		return ""
	}
	dir, err := os.MkdirTemp(keep, "e2e-")
	if err != nil {
		h.t.Fatalf("make a folder to keep in %s, which DEVSTACK_KEEP names: %v", keep, err)
	}
	h.t.Logf("this test's folder is kept: %s", dir)
	return dir
}

func (h *Harness) close() {
	if h.t.Failed() {
		h.showLogs()
	}
	for _, p := range h.procs {
		if err := p.Process.Kill9(); err != nil {
			h.t.Error(err)
		}
	}
	if h.conn != nil {
		h.conn.Close(context.Background())
	}
	if h.lake != nil {
		h.lake.Close()
	}
	if err := h.Stack.Close(); err != nil {
		h.t.Errorf("stop the stack: %v", err)
	}
}

func (h *Harness) showLogs() {
	for _, p := range h.procs {
		h.t.Logf("the end of the log of %s (pid %d):\n%s", p.name, p.PID(), p.Tail(30))
	}
	for _, path := range []string{h.Stack.Temporal.Log(), h.Stack.S3.Log(), h.Stack.Postgres.Log()} {
		h.t.Logf("the end of %s:\n%s", path, tail(path, 15))
	}
}

// Setup runs tidemark setup, which has to succeed.
func (h *Harness) Setup() {
	h.t.Helper()
	ctx, cancel := h.bound()
	defer cancel()
	if err := h.Pipeline.Setup(ctx); err != nil {
		h.t.Fatal(err)
	}
}

// Verb runs a verb of the binary to its end, whatever its exit status.
func (h *Harness) Verb(verb string, args ...string) pipeline.Result {
	h.t.Helper()
	ctx, cancel := h.bound()
	defer cancel()
	r, err := h.Pipeline.Verb(ctx, verb, args...)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// Conn is an ordinary connection to the database, made again after Postgres was
// stopped.
func (h *Harness) Conn() *pgx.Conn {
	h.t.Helper()
	ctx, cancel := h.bound()
	defer cancel()
	if h.conn != nil && h.conn.Ping(ctx) == nil {
		return h.conn
	}
	conn, err := pgx.Connect(ctx, h.Stack.Postgres.URL())
	if err != nil {
		h.t.Fatalf("connect to Postgres: %v", err)
	}
	h.conn = conn
	return conn
}

// SQL runs statements; several of them only without arguments.
func (h *Harness) SQL(sql string, args ...any) pgconn.CommandTag {
	h.t.Helper()
	tag, err := h.Conn().Exec(h.ctx, sql, args...)
	if err != nil {
		h.t.Fatalf("%s: %v", sql, err)
	}
	return tag
}

// Scalar is the single value that a query returns.
func Scalar[T any](h *Harness, sql string, args ...any) T {
	h.t.Helper()
	var v T
	if err := h.Conn().QueryRow(h.ctx, sql, args...).Scan(&v); err != nil {
		h.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// Load starts a load on the tables of package load. It has to be stopped before
// the test ends.
func (h *Harness) Load(cfg load.Config) *load.Load {
	cfg.URL = h.Stack.Postgres.URL()
	return load.Start(h.ctx, cfg)
}

// WaitRows waits until a load has committed n row changes.
func (h *Harness) WaitRows(l *load.Load, n int64) {
	h.t.Helper()
	h.Eventually(Bound, func() string {
		if err := l.Err(); err != nil {
			h.t.Fatal(err)
		}
		if got := l.Counts().Total(); got < n {
			return fmt.Sprintf("%d row changes are committed, waiting for %d", got, n)
		}
		return ""
	})
}

// StopLoad ends a load and returns what it has committed.
func (h *Harness) StopLoad(l *load.Load) tally.Counts {
	h.t.Helper()
	want, err := l.Stop()
	if err != nil {
		h.t.Fatal(err)
	}
	return want
}

// Eventually waits until check returns an empty text, which says what is still
// missing.
func (h *Harness) Eventually(bound time.Duration, check func() string) {
	h.t.Helper()
	end := time.NewTimer(bound)
	defer end.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		missing := check()
		if missing == "" {
			return
		}
		select {
		case <-tick.C:
		case <-h.ctx.Done():
			h.t.Fatalf("the test has ended while waiting: %s", missing)
		case <-end.C:
			h.t.Fatalf("after %s: %s", bound, missing)
		}
	}
}

func (h *Harness) bound() (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(h.ctx, Bound, fmt.Errorf("it has taken more than %s", Bound))
}
