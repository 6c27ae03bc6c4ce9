package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/tidemark-cdc/tidemark/internal/config"
)

func newCheck(sys system) *cobra.Command {
	var asJSON bool
	cmd := verb("check", "Check Postgres, the lake and Temporal, and say how to mend what is wrong",
		`Check all that a pipeline needs of Postgres, the lake and Temporal, before setup
or at any time after, also while the pipeline runs. All findings are listed at
once: errors, warnings of what will bite later, and what is in order. What can
be mended by a command has that command with it.

Nothing is changed. In the lake an object below _tidemark/probe- is written,
replaced and removed again, to see that the store keeps its conditional writes.

The exit status is 2 if there is an error, else 0. setup, run, streamer and
worker look at the same before they begin, and refuse to if there is an error.`,
		func(cmd *cobra.Command) error {
			c, err := loadSettings(cmd, sys, config.NeedPipeline|config.NeedPostgres|config.NeedLake)
			if err != nil {
				return err
			}
			logger := newLogger(c, sys)
			tc, err := lazyTemporal(c, sys.environ, client.MetricsNopHandler, logger)
			if err != nil {
				return err
			}
			defer tc.Close()
			tr, err := newTracker(c, sys.environ, tc, &health{}, false, logger)
			if err != nil {
				return err
			}
			p := sys.progress()
			around := lookAround(cmd.Context(), c, forCheck, true, tr, logger, p)
			p.end()
			if err := context.Cause(cmd.Context()); err != nil {
				return err
			}
			return newCheckReport(c.Pipeline, around.findings).write(cmd.OutOrStdout(), asJSON)
		})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return withSettings(cmd, "pipeline", "postgres", "lake-url", "lake-endpoint", "lake-conditional", "temporal")
}

// checkReport is what tidemark check shows.
type checkReport struct {
	Pipeline string    `json:"pipeline"`
	Errors   int       `json:"errors"`
	Warnings int       `json:"warnings"`
	Passed   int       `json:"passed"`
	Findings []finding `json:"findings"`
}

// newCheckReport puts what matters most first.
func newCheckReport(pipeline string, findings []finding) checkReport {
	r := checkReport{
		Pipeline: pipeline, Findings: []finding{},
		Errors: count(findings, levelError), Warnings: count(findings, levelWarning), Passed: count(findings, levelPass),
	}
	for _, l := range []level{levelError, levelWarning, levelPass} {
		for _, f := range findings {
			if f.Level == l {
				f.What, f.Fix = oneLine(f.What), oneLine(f.Fix)
				r.Findings = append(r.Findings, f)
			}
		}
	}
	return r
}

// write prints the report; its error is the exit status.
func (r checkReport) write(w io.Writer, asJSON bool) error {
	var err error
	if asJSON {
		err = printJSON(w, r)
	} else {
		err = r.writeText(w)
	}
	if err == nil && r.Errors > 0 {
		// The report says it all.
		err = &statusError{status: statusRefused}
	}
	return err
}

func (r checkReport) writeText(w io.Writer) error {
	for _, f := range r.Findings {
		fmt.Fprintf(w, "%-8s %-9s %s\n", f.Level, f.About, f.What)
		if f.Fix != "" {
			fmt.Fprintf(w, "%-8s %-9s   fix: %s\n", "", "", f.Fix)
		}
	}
	_, err := fmt.Fprintf(w, "%d errors, %d warnings, %d in order\n", r.Errors, r.Warnings, r.Passed)
	return err
}
