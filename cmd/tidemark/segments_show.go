package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-cdc/tidemark/internal/operator"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer"
)

func newSegmentsShow(sys system) *cobra.Command {
	var asJSON bool
	cmd := verbOf("show <first position or workflow ID>", "Show everything that Temporal knows of a segment",
		`Show a segment: its state, range, rows and tables, its attempts and the last
error, where its rows are, the objects that it has become, and where Temporal
shows it.`,
		cobra.ExactArgs(1), withOperator(sys, func(cmd *cobra.Command, args []string, o *operator.Operator, _ *progress) error {
			first, err := o.ParseID(args[0])
			if err != nil {
				return refused(err)
			}
			d, err := o.Show(cmd.Context(), first)
			if errors.Is(err, operator.ErrUnknown) {
				return refused(err)
			}
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), d)
			}
			writeDetails(cmd.OutOrStdout(), d, time.Now())
			return nil
		}))
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return withSettings(cmd, "pipeline", "temporal")
}

func writeDetails(w io.Writer, d operator.Details, now time.Time) {
	line := func(what, format string, args ...any) {
		fmt.Fprintf(w, "%-10s %s\n", what, fmt.Sprintf(format, args...))
	}
	ago := func(t time.Time) string { return max(now.Sub(t), 0).Round(time.Second).String() + " ago" }
	state := string(d.State)
	switch {
	case d.Replayed:
		state += "; its rows are in the lake by now, tidemark replay has put them there"
	case d.State == operator.Waiting:
		state += " for a person: tidemark segments retry, or quarantine"
	case d.State == operator.Broken:
		state += ", " + d.Ended + "; the streamer starts it again"
	case d.State == operator.GivenUp:
		state += ", " + d.Ended + "; tidemark verify shows how it was settled"
	}
	line("state", "%s", state)
	line("first", "%s (LSN %s)", d.Ref.First, d.Ref.First.LSN)
	line("last", "%s (LSN %s)", d.Ref.Last, d.Ref.Last.LSN)
	line("follows", "%s", d.Ref.Follows)
	line("rows", "%d, %s, digest %s, of %s", d.Ref.Rows, streamer.BytesText(d.Ref.Bytes), d.Ref.Digest, d.Ref.Day)
	line("tables", "%s", tablesText(d.Ref.Tables, d.Ref.TableCount, len(d.Ref.Tables)))
	line("lake", "%s", d.Ref.Lake)
	if d.Closed.IsZero() {
		line("started", "%s, %s", d.Started.UTC().Format(time.RFC3339), ago(d.Started))
	} else {
		line("started", "%s, ended %s after", d.Started.UTC().Format(time.RFC3339), d.Closed.Sub(d.Started).Round(time.Millisecond))
	}
	line("attempts", "%d", d.Attempts)
	if p := d.Pending; p != nil {
		line("", "%s", pendingText(p, d.Next, now))
	}
	if d.LastError != "" {
		line("error", "%s", oneLine(d.LastError))
	}
	if d.Source != (segment.Location{}) {
		rows := d.Source.Instance
		if d.Source.Address != "" {
			rows += ", " + d.Source.Address
		}
		line("rows at", "%s", rows)
	}
	for _, object := range d.Objects {
		line("object", "%s, %d rows, %s", object.Key, object.Rows, streamer.BytesText(object.Bytes))
	}
	line("workflow", "%s", d.WorkflowID)
	line("run", "%s", d.RunID)
	if d.Link != "" {
		line("", "%s", d.Link)
	}
}

func pendingText(p *operator.Pending, next, now time.Time) string {
	text := fmt.Sprintf("%s, attempt %d, ", p.Activity, p.Attempt)
	switch {
	case p.Paused:
		text += "paused in Temporal"
	case !p.Began.IsZero():
		text += fmt.Sprintf("for %s at %s", now.Sub(p.Began).Round(time.Second), p.Worker)
	case next.After(now):
		text += fmt.Sprintf("begins in %s", next.Sub(now).Round(time.Second))
	default:
		text += "waits for a worker"
	}
	if p.Progress != nil && p.Progress.Step != "" {
		text += fmt.Sprintf("; %s", p.Progress.Step)
	}
	return text
}
