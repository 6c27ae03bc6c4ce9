package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/lakecheck"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/load"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/proc"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/tally"
)

// demoRun is one run of the demo.
type demoRun struct {
	once     bool
	binary   string
	duration time.Duration
	rate     int
	opt      stack.Options

	stack    *stack.Stack
	pipeline *pipeline.Pipeline
	settings pipeline.Settings
	tidemark *proc.Process
	conn     *pgx.Conn
	lake     *lakecheck.Lake
}

func demo(ctx context.Context, args []string) (err error) {
	d := &demoRun{opt: stack.Options{Progress: progress}}
	err = parse("demo", args, func(fs *flag.FlagSet) {
		stackFlags(fs, &d.opt)
		fs.BoolVar(&d.once, "once", false, "stop when the numbers are there; status 0 only if they agree")
		fs.StringVar(&d.binary, "tidemark", "bin/tidemark", "the tidemark program")
		fs.DurationVar(&d.duration, "duration", 30*time.Second, "how long to write")
		fs.IntVar(&d.rate, "rate", 3000, "about how many row changes per second to write")
	})
	if err != nil {
		return err
	}
	if d.binary, err = filepath.Abs(d.binary); err != nil {
		return err
	}
	if _, err := os.Stat(d.binary); err != nil {
		return fmt.Errorf("there is no tidemark program at %s: run make build, or say where it is with -tidemark", d.binary)
	}
	if d.stack, err = stack.Start(ctx, d.opt); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	agree, err := d.run(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return errors.New("interrupted")
	case err != nil:
		return err
	case d.once && !agree:
		return errors.New("the lake and Postgres do not agree; see above")
	case d.once:
		return nil
	}
	fmt.Println("\nEverything stays up until Ctrl-C.")
	return d.stack.Watch(ctx)
}

func (d *demoRun) close() error {
	progress("stopping")
	var errs []error
	if d.tidemark != nil {
		errs = append(errs, d.tidemark.Stop(90*time.Second))
	}
	if d.lake != nil {
		errs = append(errs, d.lake.Close())
	}
	if d.conn != nil {
		errs = append(errs, d.conn.Close(context.Background()))
	}
	return errors.Join(append(errs, d.stack.Close())...)
}

// run goes through the whole demo and says whether all counts agree.
func (d *demoRun) run(ctx context.Context) (bool, error) {
	if err := d.start(ctx); err != nil {
		return false, err
	}
	want, took, err := d.write(ctx)
	if err != nil {
		return false, err
	}
	if err := d.drain(ctx); err != nil {
		return false, err
	}
	return d.report(ctx, want, took)
}

// start creates the tables and brings up Tidemark.
func (d *demoRun) start(ctx context.Context) (err error) {
	if d.conn, err = pgx.Connect(ctx, d.stack.Postgres.URL()); err != nil {
		return fmt.Errorf("connect to Postgres: %w", err)
	}
	if err := load.Create(ctx, d.stack.Postgres.URL()); err != nil {
		return err
	}
	ports, err := stack.FreePorts(2)
	if err != nil {
		return err
	}
	d.settings = pipeline.For(d.stack, "demo", pipeline.Settings{
		"postgres.tables": load.Tables(),
		"data.listen":     fmt.Sprintf("127.0.0.1:%d", ports[0]),
		"ops.listen":      fmt.Sprintf("127.0.0.1:%d", ports[1]),
		"temporal.ui":     d.stack.Temporal.UI(),
		"segment.max_age": "2s",
		"log.format":      "text",
	})
	file := filepath.Join(d.stack.Dir(), "tidemark.yaml")
	if err := d.settings.Write(file); err != nil {
		return err
	}
	d.pipeline = &pipeline.Pipeline{Binary: d.binary, Config: file, Env: d.stack.S3.Env(), Logs: d.stack.Dir()}
	d.lake, err = lakecheck.Open(filepath.Join(d.stack.S3.Folder(), "demo"))
	if err != nil {
		return err
	}
	progress("tidemark setup")
	if err := d.pipeline.Setup(ctx); err != nil {
		return err
	}
	progress(fmt.Sprintf("tidemark run, with its status page at http://127.0.0.1:%d/", ports[1]))
	d.tidemark, err = d.pipeline.Start("tidemark", "run")
	return err
}

// write runs the load for the demo's duration.
func (d *demoRun) write(ctx context.Context) (tally.Counts, time.Duration, error) {
	progress(fmt.Sprintf("writing for %s", d.duration))
	begin := time.Now()
	l := load.Start(ctx, load.Config{URL: d.stack.Postgres.URL(), Rate: d.rate, Seed: uint64(begin.UnixNano())})
	end := time.NewTimer(d.duration)
	defer end.Stop()
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for writing := true; writing; {
		select {
		case <-end.C:
			writing = false
		case <-tick.C:
			if err := errors.Join(l.Err(), d.showProgress(ctx, l)); err != nil {
				_, stopErr := l.Stop()
				return nil, 0, errors.Join(err, stopErr)
			}
		case <-ctx.Done():
			_, err := l.Stop()
			return nil, 0, errors.Join(ctx.Err(), err)
		}
	}
	want, err := l.Stop()
	committed, rolledBack := l.Transactions()
	progress(fmt.Sprintf("the load has stopped: %d transactions committed, %d rolled back", committed, rolledBack))
	return want, time.Since(begin), err
}

func (d *demoRun) showProgress(ctx context.Context, l *load.Load) error {
	if err := d.alive(); err != nil {
		return err
	}
	lsn, lag, err := pipeline.Ack(ctx, d.conn, d.settings.Slot())
	if err != nil {
		return err
	}
	files, err := d.lake.Files()
	if err != nil {
		return err
	}
	progress(fmt.Sprintf("%9d rows committed   %4d files in the lake   ack %s, %s behind", l.Counts().Total(), len(files), lsn, size(lag)))
	return nil
}

// drain waits until everything committed is acknowledged.
func (d *demoRun) drain(ctx context.Context) error {
	lsn, err := pipeline.End(ctx, d.conn)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	begin, shown := time.Now(), time.Now()
	err = pipeline.WaitAck(ctx, d.conn, d.settings.Slot(), lsn, func(missing int64) error {
		if time.Since(shown) > 2*time.Second {
			shown = time.Now()
			progress(fmt.Sprintf("waiting for the ack to reach %s: %s to go", lsn, size(missing)))
		}
		return d.alive()
	})
	if err != nil {
		return fmt.Errorf("%w\nthe end of Tidemark's log:\n%s", err, d.tidemark.Tail(20))
	}
	progress(fmt.Sprintf("the ack has reached the end of the log (%s) %.1fs after the load stopped", lsn, time.Since(begin).Seconds()))
	return nil
}

// alive is an error once Tidemark has ended by itself.
func (d *demoRun) alive() error {
	if d.tidemark.Running() {
		return nil
	}
	return fmt.Errorf("tidemark run ended by itself with status %d; the end of its log:\n%s", d.tidemark.ExitCode(), d.tidemark.Tail(20))
}
