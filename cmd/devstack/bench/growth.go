package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
)

// tables drains the same number of rows out of more and more tables.
func (b *bench) tables(ctx context.Context) error {
	for i := range b.size.runs {
		for _, n := range []int{1, 100, 10_000} {
			if err := b.tablesOnce(ctx, i+1, n); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) tablesOnce(ctx context.Context, run, n int) (err error) {
	name := fmt.Sprintf("tables-%d-%d", n, run)
	schema := fmt.Sprintf("many_%d", n)
	// In parts: one transaction that makes 10,000 tables holds as many locks.
	_, err = b.conn.Exec(ctx, fmt.Sprintf("create schema if not exists %s", schema))
	for k := 1; k <= n && err == nil; k += 500 {
		_, err = b.conn.Exec(ctx, fmt.Sprintf(`do $$ begin for i in %d .. %d loop
			execute format('create table if not exists %s.t%%s (id bigint primary key, note text not null)', i); end loop; end $$`, k, min(k+499, n), schema))
	}
	if err != nil {
		return fmt.Errorf("make %d tables: %w", n, err)
	}
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s.t%d", schema, i+1)
	}
	defer func() { err = errors.Join(err, b.dropSlots(ctx)) }()
	l, err := b.newPipeline(ctx, name, narrow, pipeline.Settings{
		"segment.max_age": "200ms", "postgres.tables": all, "postgres.publication": schema,
	})
	if err != nil {
		return err
	}
	rows := b.size.rows / 10
	// Each transaction writes ten tables.
	_, err = b.conn.Exec(ctx, fmt.Sprintf(`create or replace procedure bench.spread(n integer, tables integer, inout inside pg_lsn) language plpgsql as $$
		begin
			for i in 1 .. n / 100 loop
				for k in 1 .. 10 loop
					execute format('insert into %s.t%%s select nextval(''bench.ids''), md5(g::text) from generate_series(1, 10) g', 1 + (i * 10 + k) %% tables);
				end loop;
				inside := pg_current_wal_insert_lsn();
				commit;
			end loop;
		end $$`, schema))
	if err != nil {
		return fmt.Errorf("write to %d tables: %w", n, err)
	}
	inside, err := b.call(ctx, fmt.Sprintf("call bench.spread(%d, %d, null)", rows, n))
	if err != nil {
		return err
	}
	d, err := b.drainBy(ctx, l, inside, inOne...)
	if err != nil {
		return err
	}
	rate := float64(rows) / d.wall.Seconds()
	b.say("tables run %d: %d tables, %.0f rows/s, %.0f MiB; load %s", run, n, rate, d.used[0].Anon, loadAverage())
	prefix := fmt.Sprintf("tables_%d.", n)
	b.report.Add(prefix+"rows_per_s", "rows/s", "", rate)
	b.addMemory(prefix, d.used[0].Memory)
	return nil
}

// pipelines drains the same backlog by more and more pipelines at once, each a
// process of its own.
func (b *bench) pipelines(ctx context.Context) error {
	for i := range b.size.runs {
		for _, n := range []int{1, 2, 4, 8} {
			if err := b.pipelinesOnce(ctx, i+1, n); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) pipelinesOnce(ctx context.Context, run, n int) (err error) {
	var all group
	defer func() { err = errors.Join(err, all.stop(), b.dropSlots(ctx)) }()
	lanes := make([]lane, n)
	for i := range lanes {
		if lanes[i], err = b.newPipeline(ctx, fmt.Sprintf("pipelines-%d-%d-%d", run, n, i+1), narrow, pipeline.Settings{"segment.max_age": "200ms"}); err != nil {
			return err
		}
	}
	rows := b.size.rows / 5
	inside, err := b.fill(ctx, narrow, rows, 1000, 32)
	if err != nil {
		return err
	}
	began := time.Now()
	for _, l := range lanes {
		if err := all.start(ctx, l, inOne...); err != nil {
			return err
		}
	}
	for _, l := range lanes {
		if _, err := b.await(ctx, l.slot, inside, &all); err != nil {
			return err
		}
	}
	rate := float64(n*rows) / time.Since(began).Seconds()
	used, err := all.used()
	if err != nil {
		return err
	}
	peak := largest(used)
	b.say("pipelines run %d: %d at once, %.0f rows/s in all, at most %.0f MiB each; load %s", run, n, rate, peak.Anon, loadAverage())
	prefix := fmt.Sprintf("pipelines_%d.", n)
	b.report.Add(prefix+"rows_per_s", "rows/s", "", rate)
	b.addMemory(prefix, peak)
	return nil
}

// verify is tidemark verify over a million objects, whose listing and footers
// are simulated; once only if Quick, since it takes most of a minute.
func (b *bench) verify(ctx context.Context) error {
	runs := b.size.runs
	if b.cfg.Quick {
		runs = 1
	}
	for i := range runs {
		own, _, err := b.goBenchmark(ctx, "internal/lake", "BenchmarkVerify", "s", "held-bytes/object")
		if err != nil {
			return err
		}
		b.say("verify run %d: a million objects in %.0f s, most of them the simulation's; %.0f bytes held per object; load %s", i+1, own["s"], own["held-bytes/object"], loadAverage())
		b.report.Add("verify.million_objects_s", "s", "", own["s"])
		b.report.Add("verify.held_bytes_per_object", "bytes", "", own["held-bytes/object"])
	}
	return nil
}
