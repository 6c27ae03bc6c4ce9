package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/config"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

func newSetup(sys system) *cobra.Command {
	again := &settling{sys: sys, verb: "setup --recreate-slot"}
	cmd := verb("setup", "Make publication, slot, search attributes and the lake's identity",
		`Make what a pipeline needs: the publication and the replication slot in Postgres,
the search attributes in Temporal, and the lake's identity, which ties the three
together. Everything is checked before anything is changed; what is wrong is
listed, and the exit status is 2. Running setup again changes nothing.

With --recreate-slot it makes the slot of a pipeline anew that was dropped,
invalidated or lost with its server, or, if it was advanced or made again by
hand, keeps it; and it records in the lake, as gaps, what no object has. It asks
first. A slot that is in order is refused.`,
		func(cmd *cobra.Command) error {
			if again.recreate {
				return again.execute(cmd)
			}
			if again.yes {
				return refuse("--yes goes with --recreate-slot only: setup itself does not ask")
			}
			c, err := loadSettings(cmd, sys, config.NeedPipeline|config.NeedPostgres|config.NeedLake)
			if err != nil {
				return err
			}
			logger := newLogger(c, sys)
			s := &setup{cfg: c, steps: steps{cmd.OutOrStdout(), again.asJSON}, progress: sys.progress(), dryRun: again.dryRun, logger: logger}
			defer s.close()
			if err := s.prepare(cmd.Context(), sys.environ); err != nil {
				return err
			}
			return s.run(cmd.Context())
		})
	again.flags(cmd)
	cmd.Flags().BoolVar(&again.recreate, "recreate-slot", false, "make a lost slot anew, and record what is missing as a gap")
	return withSettings(cmd, "pipeline", "postgres", "lake-url", "lake-endpoint", "temporal")
}

// postgresAdmin is what setup does in Postgres; *replication.Admin implements
// it.
type postgresAdmin interface {
	CreatePublication(ctx context.Context, name string, want replication.Published) (created bool, err error)
	DropPublication(ctx context.Context, name string) (dropped bool, err error)
	Inspect(ctx context.Context) (replication.Facts, error)
	CreateSlot(ctx context.Context, name string, failover bool) (start change.LSN, err error)
	DropSlot(ctx context.Context, name string) (dropped bool, err error)
}

// attributeAdmin is what setup does in Temporal; *tracker.Tracker implements it.
type attributeAdmin interface {
	Missing(ctx context.Context) ([]string, error)
	Setup(ctx context.Context) (made []string, err error)
}

// setup is one run of the verb: prepare looks, run acts.
type setup struct {
	cfg      *config.Config
	steps    steps
	progress *progress
	dryRun   bool
	logger   *slog.Logger

	postgres   postgresAdmin
	system     replication.System
	lake       *lake.Lake
	temporal   client.Client // nil in tests
	attributes attributeAdmin
	namespace  string

	found   situation
	missing []string // search attributes
}

func (s *setup) close() {
	s.progress.end()
	if s.temporal != nil {
		s.temporal.Close()
	}
}

// prepare connects to everything, changes nothing, and refuses what is wrong.
func (s *setup) prepare(ctx context.Context, environ []string) error {
	opts, _, err := temporalOptions(s.cfg, environ)
	if err != nil {
		return refused(err)
	}
	s.namespace = opts.Namespace
	if s.temporal, err = lazyTemporal(s.cfg, environ, client.MetricsNopHandler, s.logger); err != nil {
		return err
	}
	tr, err := newTracker(s.cfg, environ, s.temporal, &health{}, false, s.logger)
	if err != nil {
		return err
	}
	s.attributes = tr
	around := lookAround(ctx, s.cfg, forSetup, true, tr, s.logger, s.progress)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := s.steps.refusal(around.findings); err != nil {
		return err
	}
	s.postgres = patientAdmin{around.admin, s.progress}
	s.system, s.lake, s.found = around.system, around.lake, around.situation
	if s.dryRun {
		if s.missing, err = tr.Missing(ctx); err != nil {
			return err
		}
	}
	return nil
}

// run makes what is missing. What it has made in Postgres is taken back if the
// lake's identity cannot be written, since a slot that no lake knows of would
// keep WAL for ever.
func (s *setup) run(ctx context.Context) error {
	s.steps.say(step{What: aboutPostgres, SystemID: s.system.SystemID}, "PostgreSQL %d, database %s, system %s", s.system.ServerVersion/10000, s.system.Database, s.system.SystemID)
	if s.dryRun {
		s.dry()
		return nil
	}
	var undo []func(context.Context) error
	err := s.apply(ctx, &undo)
	if err == nil {
		s.notes(s.warnings(ctx))
		return nil
	}
	// Also after a signal.
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	for _, takeBack := range slices.Backward(undo) {
		if uerr := takeBack(back); uerr != nil {
			return fmt.Errorf("%w; and what setup had made could not be taken back: %w; run tidemark teardown", err, uerr)
		}
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		// Postgres has refused, such as a table that does not exist, and
		// nothing is left of the attempt.
		err = refused(err)
	}
	return err
}

func (s *setup) apply(ctx context.Context, undo *[]func(context.Context) error) error {
	publication := s.found.publication
	s.progress.doing("making the publication %q", publication)
	created, err := s.postgres.CreatePublication(ctx, publication, published(s.cfg))
	if errors.Is(err, replication.ErrPublicationDiffers) {
		return refused(err)
	}
	if err != nil {
		return err
	}
	about := step{What: "publication", Publication: publication}
	if created {
		*undo = append(*undo, func(ctx context.Context) error {
			_, err := s.postgres.DropPublication(ctx, publication)
			if err == nil {
				s.steps.say(about.became(outcomeDropped), "%s dropped again", publication)
			}
			return err
		})
		s.steps.say(about.became(outcomeMade), "%s made, for %s", publication, s.tables())
	} else {
		s.steps.say(about.became(outcomeExists), "%s exists", publication)
	}

	if s.found.identity == nil {
		if err := s.foundLake(ctx, created, undo); err != nil {
			return err
		}
	} else {
		s.setUpBefore()
	}
	// From here on the pipeline is set up, and nothing is taken back.
	*undo = nil

	s.progress.doing("registering the search attributes in Temporal")
	made, err := s.attributes.Setup(ctx)
	if err != nil {
		return err
	}
	s.attributesAre(made, outcomeMade, "registered")
	return nil
}

// foundLake makes the slot and founds the lake on where it starts.
func (s *setup) foundLake(ctx context.Context, createdPublication bool, undo *[]func(context.Context) error) error {
	slot := s.found.slot
	start, err := s.postgres.CreateSlot(ctx, slot, s.cfg.Postgres.Failover)
	if err != nil {
		return err
	}
	about := step{What: "slot", Slot: slot, LSN: start}
	*undo = append(*undo, func(ctx context.Context) error {
		_, err := s.postgres.DropSlot(ctx, slot)
		if err == nil {
			s.steps.say(about.became(outcomeDropped), "%s dropped again", slot)
		}
		return err
	})
	s.steps.say(about.became(outcomeMade), "%s made, starts at %s", slot, start)
	s.progress.doing("founding the lake %s", s.lake.URL())
	err = s.lake.CreateIdentity(ctx, lake.Identity{
		Pipeline:           s.cfg.Pipeline,
		SystemID:           s.system.SystemID,
		Timeline:           s.system.Timeline,
		StartLSN:           start,
		Database:           s.system.Database,
		Slot:               slot,
		Publications:       []string{s.found.publication},
		CreatedPublication: createdPublication,
		CreatedAt:          time.Now(),
	})
	if err != nil {
		return err
	}
	s.steps.say(step{What: aboutLake, Outcome: outcomeMade, Lake: s.lake.URL(), LSN: start}, "%s founded: it begins at %s on timeline %d", s.lake.URL(), start, s.system.Timeline)
	return nil
}

// dry says what apply would do.
func (s *setup) dry() {
	about := step{What: "publication", Publication: s.found.publication}
	if s.found.publicationExists() {
		s.steps.say(about.became(outcomeExists), "%s exists", s.found.publication)
	} else {
		s.steps.say(about.became(outcomeMissing), "%s would be made, for %s", s.found.publication, s.tables())
	}
	if s.found.identity == nil {
		s.steps.say(step{What: "slot", Outcome: outcomeMissing, Slot: s.found.slot}, "%s would be made", s.found.slot)
		s.steps.say(step{What: aboutLake, Outcome: outcomeMissing, Lake: s.lake.URL()}, "%s would be founded where the slot starts", s.lake.URL())
	} else {
		s.setUpBefore()
	}
	s.attributesAre(s.missing, outcomeMissing, "would be registered")
	s.notes(replication.Warnings(s.found.facts))
}

// setUpBefore tells of slot and lake of a pipeline that was set up.
func (s *setup) setUpBefore() {
	start := s.found.identity.StartLSN
	s.steps.say(step{What: "slot", Outcome: outcomeExists, Slot: s.found.slot}, "%s exists", s.found.slot)
	s.steps.say(step{What: aboutLake, Outcome: outcomeExists, Lake: s.lake.URL(), LSN: start}, "%s was set up before, from %s on", s.lake.URL(), start)
}

// attributesAre tells what has become, or would, of search attributes.
func (s *setup) attributesAre(names []string, outcome, text string) {
	about := step{What: aboutTemporal, Namespace: s.namespace}
	if len(names) == 0 {
		s.steps.say(about.became(outcomeExists), "namespace %s has the search attributes", s.namespace)
		return
	}
	s.steps.say(about.became(outcome), "search attributes %s in namespace %s: %s", text, s.namespace, strings.Join(names, ", "))
}

// warnings says what works now and will bite later, with what was just made.
func (s *setup) warnings(ctx context.Context) []replication.Problem {
	s.progress.doing("asking Postgres once more")
	facts, err := s.postgres.Inspect(ctx)
	if err != nil {
		facts = s.found.facts
	}
	return replication.Warnings(facts)
}

func (s *setup) notes(warnings []replication.Problem) {
	for _, w := range warnings {
		s.steps.say(step{What: "note", Fix: w.Do}, "%s", w)
	}
}

func (s *setup) tables() string {
	if len(s.cfg.Postgres.Tables) == 0 {
		return "all tables"
	}
	return strings.Join(s.cfg.Postgres.Tables, ", ")
}
