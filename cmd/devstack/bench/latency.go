package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/lakecheck"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
)

const (
	// commitsPerSecond is how many transactions a second a live load commits.
	commitsPerSecond = 100
	// warmUp is how much of a live load does not count.
	warmUp = 2 * time.Second
	// idleCommits is how many single commits an idle pipeline is given in a run.
	idleCommits = 20
)

// load is a live load and how it is carried.
type load struct {
	prefix string // of the figures
	rate   int    // changes per second
	verbs  []string
}

var loads = []load{
	{"latency_1000.", 1000, inOne},
	{"latency.", 10_000, inOne},
	{"latency.apart.", 10_000, apart},
}

// latency watches how long a change takes from its commit to the ring and to the
// lake, at two rates.
func (b *bench) latency(ctx context.Context) error {
	for i := range b.size.runs {
		for k, of := range loads {
			got, err := b.live(ctx, fmt.Sprintf("latency-%d-%d", k+1, i+1), of)
			if err != nil {
				return err
			}
			b.say("latency run %d at %d changes/s by %s: commit to ring p50 %.2f ms, p99 %.2f ms; to lake p50 %.0f ms, p99 %.0f ms; load %s",
				i+1, of.rate, strings.Join(of.verbs, " and "), got.ring.at(50), got.ring.at(99), got.lake.at(50), got.lake.at(99), loadAverage())
			for _, p := range []int{50, 99} {
				b.report.Add(fmt.Sprintf("%sring.p%d_ms", of.prefix, p), "ms", "the commit", got.ring.at(p))
				b.report.Add(fmt.Sprintf("%slake.p%d_ms", of.prefix, p), "ms", "the commit", got.lake.at(p))
			}
			if len(got.used) == 1 {
				b.addMemory(of.prefix, got.used[0].Memory)
			} else {
				b.addApart(of.prefix, got.used)
			}
		}
	}
	return nil
}

// spread is how long changes took, in milliseconds, one value for each so many
// rows.
type spread []delay

type delay struct {
	ms   float64
	rows int64
}

// at gives the p-th percentile by rows.
func (s spread) at(p int) float64 {
	sorted := slices.SortedFunc(slices.Values(s), func(a, b delay) int { return cmp.Compare(a.ms, b.ms) })
	var all, passed int64
	for _, d := range sorted {
		all += d.rows
	}
	for _, d := range sorted {
		if passed += d.rows; passed*100 >= all*int64(p) {
			return d.ms
		}
	}
	return 0
}

// carried is what a live load has shown.
type carried struct {
	ring, lake spread
	used       []use
}

// live carries a load, and reads from the lake's files how long its changes took.
func (b *bench) live(ctx context.Context, name string, of load) (got carried, err error) {
	var g group
	defer func() { err = errors.Join(err, g.stop(), b.dropSlots(ctx)) }()
	slot, err := b.startLive(ctx, &g, name, of.verbs...)
	if err != nil {
		return got, err
	}
	began := time.Now()
	inside, err := b.writeLive(ctx, of.rate)
	if err != nil {
		return got, err
	}
	if _, err := b.await(ctx, slot, inside, &g); err != nil {
		return got, err
	}
	if got.used, err = g.used(); err != nil {
		return got, err
	}
	folder := filepath.Join(b.stack.S3.Folder(), name)
	l, err := lakecheck.Open(folder)
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	arrivals, err := l.Arrivals(ctx)
	if err != nil {
		return got, err
	}
	for _, a := range arrivals {
		if a.Committed.Before(began.Add(warmUp)) {
			continue
		}
		object, err := os.Stat(a.Object)
		if err != nil {
			return got, fmt.Errorf("look when an object was stored: %w", err)
		}
		got.ring = append(got.ring, delay{millis(a.Received.Sub(a.Committed)), a.Rows})
		got.lake = append(got.lake, delay{millis(object.ModTime().Sub(a.Committed)), a.Rows})
	}
	if len(got.ring) == 0 {
		return got, fmt.Errorf("the lake %s has no rows of the load", folder)
	}
	return got, nil
}

// startLive starts a pipeline in group g and waits until it streams. The caller
// stops the group and drops the slot, also after an error.
func (b *bench) startLive(ctx context.Context, g *group, name string, verbs ...string) (slot string, err error) {
	l, err := b.newPipeline(ctx, name, narrow, pipeline.Settings{"segment.max_age": "200ms"})
	if err != nil {
		return "", err
	}
	if err := g.start(ctx, l, verbs...); err != nil {
		return "", err
	}
	return l.slot, b.streaming(ctx, l.slot, g)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// writeLive commits at an even pace, for as long as size says.
func (b *bench) writeLive(ctx context.Context, rate int) (inside string, err error) {
	conn, err := pgx.Connect(ctx, b.stack.Postgres.URL()) // with synchronous commits
	if err != nil {
		return "", fmt.Errorf("connect to Postgres: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	tick := time.NewTicker(time.Second / commitsPerSecond)
	defer tick.Stop()
	for until := time.Now().Add(b.size.live + warmUp); time.Now().Before(until); {
		if _, err := conn.Exec(ctx, "select bench.narrow($1, 32)", rate/commitsPerSecond); err != nil {
			return "", fmt.Errorf("write a live load: %w", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return b.fill(ctx, narrow, 1, 1, 32)
}

// idleAck gives an idle pipeline one commit after the other, and watches how long
// after its upload each is acknowledged, the lake's own record included.
func (b *bench) idleAck(ctx context.Context) (err error) {
	var g group
	defer func() { err = errors.Join(err, g.stop(), b.dropSlots(ctx)) }()
	slot, err := b.startLive(ctx, &g, "idle-ack", inOne...)
	if err != nil {
		return err
	}
	l, err := lakecheck.Open(filepath.Join(b.stack.S3.Folder(), "idle-ack"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	known := map[string]bool{}
	for i := range b.size.runs {
		var each spread
		for range idleCommits {
			inside, err := b.fill(ctx, narrow, 1, 1, 32)
			if err != nil {
				return err
			}
			if err := b.acked(ctx, slot, inside); err != nil {
				return err
			}
			seen := time.Now()
			files, err := l.Files()
			if err != nil {
				return err
			}
			for _, file := range files {
				if known[file] {
					continue
				}
				known[file] = true
				object, err := os.Stat(file)
				if err != nil {
					return fmt.Errorf("look when an object was stored: %w", err)
				}
				each = append(each, delay{millis(seen.Sub(object.ModTime())), 1})
			}
		}
		b.say("idle_ack run %d: acknowledged %.0f ms after the upload, at most %.0f ms; load %s", i+1, each.at(50), each.at(100), loadAverage())
		b.report.Add("latency.idle_ack_after_upload_ms", "ms", "the object is stored", each.at(50))
		b.report.Add("latency.idle_ack_after_upload_max_ms", "ms", "the object is stored", each.at(100))
	}
	used, err := g.used()
	if err != nil {
		return err
	}
	b.addMemory("latency.idle_ack_", used[0].Memory)
	return nil
}

// acked waits for an ack, and looks more often than await, which a drain that
// uses all of the machine would feel.
func (b *bench) acked(ctx context.Context, slot, inside string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		var done bool
		err := b.conn.QueryRow(ctx, "select confirmed_flush_lsn >= $2::text::pg_lsn from pg_replication_slots where slot_name = $1", slot, inside).Scan(&done)
		if err != nil {
			return fmt.Errorf("wait for slot %s to acknowledge %s: %w", slot, inside, err)
		}
		if done {
			return nil
		}
		<-tick.C
	}
}
