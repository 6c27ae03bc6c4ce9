package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-cdc/tidemark/internal/config"
	"github.com/tidemark-cdc/tidemark/internal/lake"
)

func newPause(sys system) *cobra.Command {
	var by, reason string
	var asJSON bool
	cmd := verb("pause", "Pause a pipeline until tidemark resume",
		`Pause a pipeline: within a few seconds its streamer dispatches nothing more. It
keeps the slot and goes on telling Postgres that it is there; segments in flight
finish, and the ack follows them. The pause stands in the lake
(_tidemark/paused.json), so it outlasts every process, and can be made while
none runs. Pausing what is paused changes nothing.

Postgres keeps the write-ahead log from the ack on for as long as the pause
lasts, and loses the slot when that exceeds max_slot_wal_keep_size.`,
		func(cmd *cobra.Command) error {
			p := sys.progress()
			defer p.end()
			p.doing("asking the lake")
			l, err := openOwnLake(cmd, sys)
			if err != nil {
				return err
			}
			if strings.ContainsFunc(by+reason, func(r rune) bool { return r < ' ' }) {
				return refuse("--by and --reason are one line of text each")
			}
			pause, made, err := l.WritePause(cmd.Context(), lake.Pause{By: cmp.Or(by, whoami()), Reason: reason, Since: time.Now()})
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if asJSON {
				return printJSON(out, pauseReport{Paused: true, Changed: made, Pause: &pause})
			}
			if !made {
				fmt.Fprintf(out, "It is paused already: %s. That stands.\n", pause)
				return nil
			}
			fmt.Fprintf(out, "The pipeline is %s.\n", pause)
			fmt.Fprintln(out, "A streamer that runs sees it within a few seconds; segments in flight still finish.")
			fmt.Fprintln(out, "Postgres keeps its WAL from the ack on until tidemark resume: watch it with tidemark status.")
			return nil
		})
	cmd.Flags().StringVar(&by, "by", "", "`who` pauses it (default: user and host)")
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, for those who see the pause")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return withSettings(cmd, "pipeline", "lake-url", "lake-endpoint")
}

func newResume(sys system) *cobra.Command {
	var asJSON bool
	cmd := verb("resume", "Let a paused pipeline go on",
		`End the pause of a pipeline. A streamer that runs goes on within a few seconds.
Resuming what is not paused changes nothing.`,
		func(cmd *cobra.Command) error {
			p := sys.progress()
			defer p.end()
			p.doing("asking the lake")
			l, err := openOwnLake(cmd, sys)
			if err != nil {
				return err
			}
			pause, err := l.RemovePause(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), pauseReport{Changed: pause != nil, Pause: pause})
			}
			if pause == nil {
				fmt.Fprintln(cmd.OutOrStdout(), "It is not paused: nothing to do.")
				return nil
			}
			fmt.Fprintf(cmd.OutOrStdout(), "The pipeline goes on within a few seconds. It was %s.\n", pause)
			return nil
		})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return withSettings(cmd, "pipeline", "lake-url", "lake-endpoint")
}

// pauseReport is what pause and resume print as JSON.
type pauseReport struct {
	Paused bool `json:"paused"`
	// Changed says that it was not so before.
	Changed bool `json:"changed"`
	// Pause is the one that stands, or that has ended; nil if there was none.
	Pause *lake.Pause `json:"pause"`
}

// openOwnLake opens the lake of a verb that is about a pipeline, and refuses one
// that was not set up or is another's.
func openOwnLake(cmd *cobra.Command, sys system) (*lake.Lake, error) {
	c, err := loadSettings(cmd, sys, config.NeedPipeline|config.NeedLake)
	if err != nil {
		return nil, err
	}
	l, err := openLake(cmd.Context(), c)
	if err != nil {
		return nil, err
	}
	return l, checkOwner(cmd.Context(), l, c.Pipeline)
}

func checkOwner(ctx context.Context, l *lake.Lake, pipeline string) error {
	id, err := l.ReadIdentity(ctx)
	switch {
	case errors.Is(err, lake.ErrNotFound):
		return refuse("the lake %s was not set up: check lake.url, or run tidemark setup", l.URL())
	case err != nil:
		return err
	}
	system, _ := id.Present()
	if err := id.Check(pipeline, system); err != nil {
		return refused(fmt.Errorf("%s: %w", l.URL(), err))
	}
	return nil
}

// whoami names the person for those who see the pause.
func whoami() string {
	name := "somebody"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}
