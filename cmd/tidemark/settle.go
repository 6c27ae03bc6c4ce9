package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/config"
	"github.com/tidemark-cdc/tidemark/streamer/settle"
)

func newResolve(sys system) *cobra.Command {
	s := &settling{sys: sys, verb: "resolve"}
	var oldEnd string
	cmd := verb("resolve", "Settle what a streamer stops at",
		`Look at the server, the slot, the lake and Temporal, say which situation it is,
and, after asking, settle it, so that the streamer can go on:

- Rows lie in the lake that the database has lost in a failover: the divergence
  is recorded. The objects stay, and tidemark verify reports them.
- The slot stands ahead of what the lake has on record, since it was advanced or
  made again by hand: what is missing is recorded as a gap.
- Segments are recorded in Temporal that can never be finished: they are given up.
- With --upgraded: the server was made by pg_upgrade from the one that the lake
  was written from. The succession is recorded, and the slot made anew if it is
  not there. What the old server may have written last is recorded as a gap,
  unless --old-end shows that the lake has it: the "Latest checkpoint location"
  that pg_controldata gives for the old cluster, stopped while the streamer ran.

Nothing is deleted. The streamer must be stopped. When there is nothing to
resolve it says so, and the status is 0.`,
		func(cmd *cobra.Command) (err error) {
			if oldEnd != "" {
				if !s.upgraded {
					return refuse("--old-end goes with --upgraded only")
				}
				if s.oldEnd, err = change.ParseLSN(oldEnd); err != nil {
					return refuse("--old-end: %v: give the \"Latest checkpoint location\" of pg_controldata, such as 0/1549A30", err)
				}
			}
			return s.execute(cmd)
		})
	s.flags(cmd)
	cmd.Flags().BoolVar(&s.upgraded, "upgraded", false, "the server was made by pg_upgrade from the one that the lake knows")
	cmd.Flags().StringVar(&oldEnd, "old-end", "", "`LSN` at which the old server's WAL ended, with --upgraded")
	return withSettings(cmd, "pipeline", "postgres-url", "postgres-slot", "postgres-publication", "lake-url", "lake-endpoint", "temporal")
}

// settling is one run of resolve, or of setup --recreate-slot.
type settling struct {
	sys         system
	verb        string
	dryRun, yes bool
	recreate    bool
	upgraded    bool
	oldEnd      change.LSN
	asJSON      bool

	cfg      *config.Config
	steps    steps
	progress *progress
}

func (s *settling) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.dryRun, "dry-run", false, "say what was found and what would be done, and do nothing")
	cmd.Flags().BoolVar(&s.yes, "yes", false, "do not ask")
	stepsFlag(cmd, &s.asJSON)
}

func (s *settling) execute(cmd *cobra.Command) (err error) {
	if err := mayAsk(s.asJSON, s.yes || s.dryRun); err != nil {
		return err
	}
	if s.cfg, err = loadSettings(cmd, s.sys, config.NeedPipeline|config.NeedPostgres|config.NeedLake); err != nil {
		return err
	}
	s.steps, s.progress = steps{cmd.OutOrStdout(), s.asJSON}, s.sys.progress()
	defer s.progress.end()
	return s.run(cmd.Context())
}

func (s *settling) run(ctx context.Context) error {
	logger := newLogger(s.cfg, s.sys)
	temporal, err := lazyTemporal(s.cfg, s.sys.environ, client.MetricsNopHandler, logger)
	if err != nil {
		return err
	}
	defer temporal.Close()
	tr, err := newTracker(s.cfg, s.sys.environ, temporal, &health{}, false, logger)
	if err != nil {
		return err
	}
	around := lookAround(ctx, s.cfg, forSettling, true, tr, logger, s.progress)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := s.steps.refusal(around.findings); err != nil {
		return err
	}
	s.progress.doing("looking for objects and segments beyond the lake's record")
	c, err := settle.Look(ctx, s.config(around), settle.Deps{Lake: around.lake, Postgres: patientAdmin{around.admin, s.progress}, Segments: tr})
	if err != nil {
		return settlingError(err)
	}
	return s.decide(ctx, c)
}

func (s *settling) config(around *surroundings) settle.Config {
	cfg := settle.Config{
		Pipeline: s.cfg.Pipeline, Slot: s.cfg.Postgres.Slot, Failover: s.cfg.Postgres.Failover,
		System: around.system, History: around.history,
		Recreate: s.recreate || s.upgraded, Upgraded: s.upgraded, OldEnd: s.oldEnd,
		Writer: fmt.Sprintf("tidemark %s %s", s.verb, newInstance()),
	}
	if !around.publicationExists() {
		cfg.Replace = true
		cfg.Publish = func(ctx context.Context) error {
			_, err := around.admin.CreatePublication(ctx, around.publication, published(s.cfg))
			if err == nil {
				s.steps.say(step{What: "done", Outcome: outcomeMade, Publication: around.publication}, "the publication %q is made", around.publication)
			}
			return err
		}
	}
	return cfg
}

// decide shows what was found, asks, and has it done.
func (s *settling) decide(ctx context.Context, c *settle.Case) error {
	if s.recreate && !c.SlotLost() {
		if !c.Nothing() {
			return refuse("the replication slot %q can be read, and stands where the lake has on record; but there is something else to settle: tidemark resolve", s.cfg.Postgres.Slot)
		}
		return refuse("the replication slot %q can be read, and stands where the lake has on record: there is no reason to make it anew, and a new one would leave a gap", s.cfg.Postgres.Slot)
	}
	if c.Nothing() {
		s.steps.sentence(step{What: aboutPipeline, Outcome: outcomeNothing}, "There is nothing to resolve: slot, lake and server of pipeline %q fit together.", s.cfg.Pipeline)
		return nil
	}
	for _, what := range c.Found() {
		s.steps.say(step{What: "found"}, "%s", what)
	}
	for _, what := range c.Steps() {
		s.steps.say(step{What: "to do"}, "%s", what)
	}
	if s.dryRun {
		return nil
	}
	if !s.yes {
		s.progress.idle()
		if err := confirm(s.sys, s.steps.out, s.verb, s.cfg.Pipeline); err != nil {
			return err
		}
	}
	s.progress.doing("settling it")
	err := c.Do(ctx, func(did string) {
		s.steps.say(step{What: "done"}, "%s", did)
		s.progress.doing("settling it; the last step: %s", did)
	})
	if err != nil {
		// Never a refusal: something may have been done.
		return fmt.Errorf("%w; run tidemark %s again: it goes on where this has ended", err, s.verb)
	}
	s.steps.sentence(step{What: aboutPipeline, Outcome: outcomeSettled}, "The streamer can be started again.")
	return nil
}

// settlingError gives what cannot be settled the status of a refusal.
func settlingError(err error) error {
	var cannot *settle.RefusedError
	if errors.As(err, &cannot) {
		return refused(err)
	}
	return err
}

// confirm wants the pipeline's name from a person.
func confirm(sys system, out io.Writer, verb, pipeline string) error {
	if !sys.terminal() {
		return refuse("%s asks first, and nobody is there to answer: give --yes if you mean it", verb)
	}
	fmt.Fprint(out, "Type the pipeline's name to go on: ")
	answer, err := bufio.NewReader(sys.stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if strings.TrimSpace(answer) != pipeline {
		return refuse("the answer was not %q: nothing was done", pipeline)
	}
	return nil
}
