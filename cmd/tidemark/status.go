package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-cdc/tidemark/internal/config"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/streamer"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

func newStatus(sys system) *cobra.Command {
	var asJSON, watch bool
	var interval time.Duration
	cmd := verb("status", "Show the slot's lag, the ring, the segments in flight and the ack",
		`Show how a pipeline stands: the slot as Postgres sees it, how much WAL is kept
for it and how long that can go on, what the lake has on
record, and, if the streamer runs on this machine (or at ops.listen), its ring,
the segments in flight, and what holds the ack. That no streamer answers is shown and is no failure;
a database or lake that cannot be asked is one.

With --watch it is shown again every --interval: redrawn in place on a terminal,
until q or Ctrl-C; otherwise as a line each time, with --json as an object each.`,
		func(cmd *cobra.Command) error {
			c, err := loadSettings(cmd, sys, config.NeedPipeline|config.NeedPostgres|config.NeedLake)
			if err != nil {
				return err
			}
			if watch && interval < minInterval {
				return refuse("--interval %s: want at least %s", interval, minInterval)
			}
			l, err := openLake(cmd.Context(), c)
			if err != nil {
				return err
			}
			admin, err := replication.NewAdmin(replicationConfig(c), newLogger(c, sys))
			if err != nil {
				return refused(err)
			}
			if watch {
				w := watcher{every: interval, out: cmd.OutOrStdout(), read: func(ctx context.Context) (statusReport, error) {
					return readStatus(ctx, c, admin, l, nil)
				}}
				return w.run(cmd.Context(), sys, asJSON)
			}
			p := sys.progress()
			r, err := readStatus(cmd.Context(), c, admin, l, p)
			p.end()
			if asJSON {
				err = errors.Join(printJSON(cmd.OutOrStdout(), r), err)
			} else {
				r.writeText(cmd.OutOrStdout())
			}
			return err
		})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&watch, "watch", false, "go on showing it")
	cmd.Flags().DurationVar(&interval, "interval", 2*time.Second, "how often, with --watch")
	return withSettings(cmd, "pipeline", "postgres-url", "lake-url", "lake-endpoint", "ops")
}

// statusReport is what tidemark status shows. What could not be read is nil.
type statusReport struct {
	Pipeline string                `json:"pipeline"`
	Slot     *replication.SlotInfo `json:"slot"`
	// WAL is what the slot keeps: as the process sees it, with its rate, else of
	// this one look.
	WAL      *streamer.WAL   `json:"wal"`
	Lake     string          `json:"lake"`
	Identity *lake.Identity  `json:"identity"`
	Ack      *lake.AckRecord `json:"ack"`
	// Paused says by whom, since when and why the pipeline is paused; nil if it
	// is not.
	Paused *lake.Pause `json:"paused"`
	// Gaps and Divergences are those that are recorded in the lake.
	Gaps        []lake.Gap       `json:"gaps"`
	Divergences lake.Divergences `json:"divergences"`
	// Process is the page of the streamer's process; Unreachable says why there
	// is none.
	Process     *pageStatus `json:"process"`
	Unreachable string      `json:"unreachable,omitempty"`
	// Problems keep the pipeline from running, Notes will bite it later.
	Problems []replication.Problem `json:"problems"`
	Notes    []replication.Problem `json:"notes"`
	// Error is what could not be asked; of --watch alone, which does not end for
	// it.
	Error string `json:"error,omitempty"`
}

// readStatus asks everyone. The error joins those that nothing could be had
// from; the report has the rest.
func readStatus(ctx context.Context, c *config.Config, admin postgresAdmin, l *lake.Lake, p *progress) (statusReport, error) {
	r := statusReport{Pipeline: c.Pipeline, Lake: l.URL(), Problems: []replication.Problem{}, Notes: []replication.Problem{},
		Gaps: []lake.Gap{}, Divergences: lake.Divergences{}}
	var errs []error
	p.doing("asking Postgres")
	if facts, err := admin.Inspect(ctx); err != nil {
		errs = append(errs, fmt.Errorf("ask Postgres: %w", err))
	} else {
		r.Slot = facts.Slot
		r.Problems = append(r.Problems, replication.Check(facts)...)
		r.Notes = append(r.Notes, replication.Warnings(facts)...)
	}
	p.doing("asking the lake %s", l.URL())
	if id, err := l.ReadIdentity(ctx); err == nil {
		r.Identity = &id
	} else if !errors.Is(err, lake.ErrNotFound) {
		errs = append(errs, err)
	}
	if ack, _, err := l.ReadAck(ctx); err == nil {
		r.Ack = &ack
	} else if !errors.Is(err, lake.ErrNotFound) {
		errs = append(errs, err)
	}
	if paused, err := l.ReadPause(ctx); err == nil {
		r.Paused = paused
	} else {
		errs = append(errs, err)
	}
	if gaps, err := l.Gaps(ctx); err != nil {
		errs = append(errs, err)
	} else {
		r.Gaps = append(r.Gaps, gaps...)
	}
	if ds, err := l.Divergences(ctx); err != nil {
		errs = append(errs, err)
	} else {
		r.Divergences = append(r.Divergences, ds...)
	}
	p.doing("asking the process at %s", askedPage(c))
	var page pageStatus
	if err := getPage(ctx, c, "/status", &page); err != nil {
		r.Unreachable = err.Error()
	} else if page.Pipeline != c.Pipeline {
		r.Unreachable = fmt.Sprintf("the process at %s is of pipeline %q: set ops.listen to this pipeline's", askedPage(c), page.Pipeline)
	} else {
		r.Process = &page
	}
	if r.Process != nil && r.Process.Streamer != nil && r.Process.Streamer.WAL != nil {
		r.WAL = r.Process.Streamer.WAL
	} else if r.Slot != nil {
		wal := streamer.WALOf(walLimits(c), *r.Slot, time.Now())
		r.WAL = &wal
	}
	return r, errors.Join(errs...)
}
