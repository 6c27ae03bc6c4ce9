package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/bench/figures"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
)

// Config says what to measure.
type Config struct {
	// Binary is the tidemark program.
	Binary string
	// Quick measures the same names with less work.
	Quick bool
	// Runs is how often each figure is measured; 0 is 5, or 3 if Quick.
	Runs int
	// Large is how many rows the transaction has of which the memory is watched,
	// some 220 bytes each; 0 is 1,000,000.
	Large int
	// Only are the scenarios to measure; empty is all. See Scenarios.
	Only []string
	// Progress is told in a sentence what is going on.
	Progress func(string)
}

// bench is one Run.
type bench struct {
	cfg    Config
	size   size
	stack  *stack.Stack
	conn   *pgx.Conn
	peer   peer
	report *figures.Report
	failed []string
	// slots are those that a scenario has made, until it drops them.
	slots []string
}

// size is how much work is done.
type size struct {
	runs int
	// rows of the drains' backlogs, of single of those whose transactions have
	// one row each, of large of the transaction of which the memory is watched.
	rows, single, large int
	// live is for how long the latency is watched at each rate.
	live time.Duration
	// segments is how many the backlog of the scaling has.
	segments int
}

func (c Config) size() size {
	s := size{runs: 5, rows: 1_000_000, single: 1_000_000, large: 1_000_000, live: 12 * time.Second, segments: 120}
	if c.Quick {
		s = size{runs: 3, rows: 300_000, single: 60_000, large: 1_000_000, live: 6 * time.Second, segments: 60}
	}
	if c.Runs > 0 {
		s.runs = c.Runs
	}
	if c.Large > 0 {
		s.large = c.Large
	}
	return s
}

type scenario struct {
	name string
	run  func(*bench, context.Context) error
}

func scenarios() []scenario {
	return []scenario{
		{"ordered_path", (*bench).path},
		{"encode", (*bench).encode},
		memory(passage{name: "streamer", ring: 32, bound: 80}),
		memory(passage{name: "default_ring", ring: 256, bound: 320}),
		memory(passage{name: "default_ring_full", ring: 256, bound: 320, late: true}),
		drain("c", narrow, func(s size) (rows, per int) { return s.rows, s.rows }),
		drain("b", narrow, func(s size) (rows, per int) { return s.rows, 1000 }),
		drain("a", narrow, func(s size) (rows, per int) { return s.single, 1 }),
		drain("full", full, func(s size) (rows, per int) { return s.rows / 2, 1000 }),
		drain("wide", wide, func(s size) (rows, per int) { return s.rows / 10, 1000 }),
		{"slow_put", (*bench).slowPut},
		{"latency", (*bench).latency},
		{"idle_ack", (*bench).idleAck},
		{"scale", (*bench).scale},
		{"temporal_cost", (*bench).temporalCost},
		{"tables", (*bench).tables},
		{"pipelines", (*bench).pipelines},
		{"verify", (*bench).verify},
	}
}

// Scenarios are the names that Config.Only takes.
func Scenarios() []string {
	var names []string
	for _, s := range scenarios() {
		names = append(names, s.name)
	}
	return names
}

// Run starts a stack, measures and stops it. Its error is also that a bound was
// not kept; the figures are there then too.
func Run(ctx context.Context, cfg Config) (_ []figures.Figure, err error) {
	b := &bench{cfg: cfg, size: cfg.size(), report: figures.NewReport()}
	chosen, err := choose(cfg.Only)
	if err != nil {
		return nil, err
	}
	program, err := findPeer()
	if err != nil {
		return nil, err
	}
	b.stack, err = stack.Start(ctx, stack.Options{
		Progress: cfg.Progress,
		Temporal: stack.TemporalOptions{NoUI: true},
		Postgres: stack.PostgresOptions{Settings: map[string]string{
			// Three slots for every run of a drain, and no checkpoint in the middle.
			"max_replication_slots": "100", "max_wal_size": "16GB", "checkpoint_timeout": "1h",
			"shared_buffers": "256MB", "autovacuum": "off",
		}},
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.stack.Close()) }()
	b.peer = peer{binary: program, url: b.stack.Postgres.URL(), logs: b.stack.Dir()}
	if b.conn, err = pgx.Connect(ctx, b.stack.Postgres.URL()); err != nil {
		return nil, fmt.Errorf("connect to Postgres: %w", err)
	}
	defer func() { err = errors.Join(err, b.conn.Close(context.WithoutCancel(ctx))) }()
	if err := b.createTables(ctx); err != nil {
		return nil, err
	}
	for _, s := range chosen {
		b.say("%s: machine's load is %s", s.name, loadAverage())
		if err := s.run(b, ctx); err != nil {
			return b.report.Figures(), fmt.Errorf("measure %s: %w", s.name, err)
		}
	}
	if len(b.failed) > 0 {
		return b.report.Figures(), errors.New(strings.Join(b.failed, "\n"))
	}
	return b.report.Figures(), nil
}

func choose(only []string) ([]scenario, error) {
	if len(only) == 0 {
		return scenarios(), nil
	}
	var chosen []scenario
	for _, name := range only {
		n := len(chosen)
		for _, s := range scenarios() {
			if s.name == name {
				chosen = append(chosen, s)
			}
		}
		if len(chosen) == n {
			return nil, fmt.Errorf("there is no scenario %q; there are %s", name, strings.Join(Scenarios(), ", "))
		}
	}
	return chosen, nil
}

func (b *bench) say(format string, args ...any) { b.cfg.Progress(fmt.Sprintf(format, args...)) }

// loadAverage is the machine's load over one, five and fifteen minutes.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 3 {
		return "unknown"
	}
	return strings.Join(fields[:3], " ")
}

// lane is a pipeline and the slot that it reads.
type lane struct {
	*pipeline.Pipeline
	slot string
}

// newPipeline sets up a pipeline of the given name for a shape of changes. Its
// slot begins where the log ends now. The caller drops it with dropSlots.
func (b *bench) newPipeline(ctx context.Context, name string, of shape, extra pipeline.Settings) (lane, error) {
	ports, err := stack.FreePorts(1)
	if err != nil {
		return lane{}, err
	}
	settings := pipeline.Settings{
		"postgres.tables":      []string{of.table()},
		"postgres.publication": of.publication(),
		"data.listen":          fmt.Sprintf("127.0.0.1:%d", ports[0]),
		"ops.listen":           "off",
		"log.format":           "text",
	}
	for k, v := range extra {
		settings[k] = v
	}
	settings = pipeline.For(b.stack, name, settings)
	file := filepath.Join(b.stack.Dir(), name+".yaml")
	if err := settings.Write(file); err != nil {
		return lane{}, err
	}
	p := &pipeline.Pipeline{Binary: b.cfg.Binary, Config: file, Env: b.stack.S3.Env(), Logs: b.stack.Dir()}
	b.slots = append(b.slots, settings.Slot())
	return lane{p, settings.Slot()}, p.Setup(ctx)
}
