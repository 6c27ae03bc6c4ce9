package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tidemark-cdc/tidemark/internal/config"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/streamer"
)

func newVerify(sys system) *cobra.Command {
	var asJSON bool
	cmd := verb("verify", "Check from the lake alone that nothing is missing or doubled",
		`List the lake's objects, read what each says of itself, and walk the chain from
where the pipeline began to what was acknowledged. Nothing but the lake is asked,
and it may be written meanwhile. Each gap, overlap, foreign or unreadable object
is a line; the exit status is then 1. Gaps and divergences that a person has
settled (setup --recreate-slot, resolve) are shown with why and when, and leave
the status 0.`,
		func(cmd *cobra.Command) error {
			c, err := loadSettings(cmd, sys, config.NeedLake)
			if err != nil {
				return err
			}
			l, err := openLake(cmd.Context(), c)
			if err != nil {
				return err
			}
			p := sys.progress()
			report, err := verified(cmd.Context(), l, p)
			p.end()
			if err != nil {
				return err
			}
			if asJSON {
				err = printJSON(cmd.OutOrStdout(), report)
			} else {
				err = report.WriteText(cmd.OutOrStdout())
			}
			if err == nil && !report.OK() {
				// The report says it all.
				err = &statusError{status: statusFailed}
			}
			return err
		})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return withSettings(cmd, "lake")
}

// verified is lake.Verify that says how far it has come.
func verified(ctx context.Context, l *lake.Lake, p *progress) (lake.Report, error) {
	p.doing("reading the records of the lake")
	return lake.Verify(ctx, l, lake.Options{Progress: func(read lake.Progress) {
		p.doing("reading the lake: %d objects of %d days so far, %s", read.Objects, read.Days, bytesRead(read.Bytes))
	}})
}

// bytesRead is a number of bytes that is made text when it is shown.
type bytesRead int64

func (n bytesRead) String() string { return streamer.BytesText(int64(n)) }
