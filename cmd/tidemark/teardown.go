package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tidemark-cdc/tidemark/internal/config"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/streamer"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

func newTeardown(sys system) *cobra.Command {
	var yes, asJSON bool
	cmd := verb("teardown", "Drop the slot, and the publication if setup made it",
		`Drop the pipeline's replication slot, and its publication if setup made it. The
lake and the workflows in Temporal stay as they are. Rows that are not in the
lake by then will never be: a new setup needs a new prefix of the lake, or, to go
on in this one with a recorded gap, setup --recreate-slot.`,
		func(cmd *cobra.Command) error {
			if err := mayAsk(asJSON, yes); err != nil {
				return err
			}
			c, err := loadSettings(cmd, sys, config.NeedPipeline|config.NeedPostgres|config.NeedLake)
			if err != nil {
				return err
			}
			t := &teardown{cfg: c, steps: steps{cmd.OutOrStdout(), asJSON}, progress: sys.progress()}
			defer t.progress.end()
			admin, err := replication.NewAdmin(replicationConfig(c), newLogger(c, sys))
			if err != nil {
				return refused(err)
			}
			t.postgres = admin
			if t.lake, err = openLake(cmd.Context(), c); err != nil {
				return err
			}
			if err := t.look(cmd.Context()); err != nil || t.nothing() {
				return err
			}
			if !yes {
				if err := t.ask(sys); err != nil {
					return err
				}
			}
			return t.run(cmd.Context())
		})
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	stepsFlag(cmd, &asJSON)
	return withSettings(cmd, "pipeline", "postgres", "lake-url", "lake-endpoint")
}

// teardown is one run of the verb.
type teardown struct {
	cfg      *config.Config
	steps    steps
	progress *progress
	postgres postgresAdmin
	lake     *lake.Lake

	slot        *replication.SlotInfo // nil: there is none
	publication bool                  // setup made it, and it is still there
}

// look finds what is to be dropped, and refuses what is not this pipeline's.
func (t *teardown) look(ctx context.Context) error {
	t.progress.doing("asking Postgres")
	facts, err := t.postgres.Inspect(ctx)
	if err != nil {
		return err
	}
	t.slot = facts.Slot
	if t.slot != nil && t.slot.Active {
		return refuse("the replication slot %q is being read by the process %d of Postgres: stop the streamer first", t.slot.Name, t.slot.ActivePID)
	}
	t.progress.doing("asking the lake %s", t.lake.URL())
	id, err := t.lake.ReadIdentity(ctx)
	if errors.Is(err, lake.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	systemID := facts.SystemID
	if systemID == "" {
		systemID, _ = id.Present() // this role may not know
	}
	if err := id.Check(t.cfg.Pipeline, systemID); err != nil {
		return refused(fmt.Errorf("%s: %w", t.lake.URL(), err))
	}
	for _, p := range facts.Publications {
		t.publication = t.publication || p.Name == t.cfg.Postgres.Publication && p.Exists && id.CreatedPublication
	}
	return nil
}

// nothing says, also to the user, that there is nothing to drop.
func (t *teardown) nothing() bool {
	if t.slot != nil || t.publication {
		return false
	}
	t.steps.sentence(step{What: aboutPipeline, Outcome: outcomeNothing}, "There is no replication slot %q, and no publication that setup made: nothing to do.", t.cfg.Postgres.Slot)
	return true
}

// ask wants the pipeline's name from a person.
func (t *teardown) ask(sys system) error {
	t.progress.idle()
	out := t.steps.out
	if t.slot != nil {
		fmt.Fprintf(out, "This drops the replication slot %q. %s of the write-ahead log behind it are not in the lake, and never will be.\n", t.slot.Name, streamer.BytesText(t.slot.LagBytes))
	}
	if t.publication {
		fmt.Fprintf(out, "It drops the publication %q, which setup made.\n", t.cfg.Postgres.Publication)
	}
	fmt.Fprintf(out, "The lake %s stays. ", t.lake.URL())
	return confirm(sys, out, "teardown", t.cfg.Pipeline)
}

func (t *teardown) run(ctx context.Context) error {
	if t.slot != nil {
		t.progress.doing("dropping the replication slot %q", t.slot.Name)
		dropped, err := t.postgres.DropSlot(ctx, t.slot.Name)
		if errors.Is(err, replication.ErrSlotInUse) {
			return refused(err)
		}
		if err != nil {
			return err
		}
		t.say(dropped, step{What: "slot", Slot: t.slot.Name}, "replication slot", t.slot.Name)
	}
	if t.publication {
		t.progress.doing("dropping the publication %q", t.cfg.Postgres.Publication)
		dropped, err := t.postgres.DropPublication(ctx, t.cfg.Postgres.Publication)
		if err != nil {
			return err
		}
		t.say(dropped, step{What: "publication", Publication: t.cfg.Postgres.Publication}, "publication", t.cfg.Postgres.Publication)
	}
	return nil
}

func (t *teardown) say(dropped bool, about step, what, name string) {
	if dropped {
		t.steps.sentence(about.became(outcomeDropped), "dropped the %s %q", what, name)
	} else {
		t.steps.sentence(about.became(outcomeGone), "the %s %q was gone already", what, name)
	}
}
