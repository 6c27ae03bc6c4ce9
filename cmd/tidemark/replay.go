package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/config"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/operator"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

func newReplay(sys system) *cobra.Command {
	var from, to string
	var dryRun, asJSON bool
	cmd := verb("replay", "Bring what has failed, or lies in quarantine, into the lake",
		`Bring into the lake what can be brought there without Postgres, in a range of
the stream or in all of it:

- What lies in quarantine is decoded again, by a workflow in Temporal for each
  segment. Its object then stands in its place in the lake, as the same link of
  the chain, and the raw messages are removed. What still cannot be decoded stays
  in quarantine. This needs a worker, and no streamer.
- Segments that wait are sent the update retry. Those whose workflow was
  terminated or has failed are started again by the streamer, which has their
  rows or reads them again.
- What is missing in the lake, and what is recorded as a gap, is listed: nobody
  has these rows but the database.

It may be broken off and run again at any time.`,
		func(cmd *cobra.Command) error {
			c, err := loadSettings(cmd, sys, config.NeedPipeline|config.NeedLake)
			if err != nil {
				return err
			}
			r := &replay{out: cmd.OutOrStdout(), asJSON: asJSON, progress: sys.progress(), pipeline: c.Pipeline}
			defer r.progress.end()
			if r.within, err = parseRange(from, to); err != nil {
				return refused(err)
			}
			if r.lake, err = openLake(cmd.Context(), c); err != nil {
				return err
			}
			if err := checkOwner(cmd.Context(), r.lake, c.Pipeline); err != nil {
				return err
			}
			var end func()
			if r.operator, end, err = openOperator(c, sys, r.progress); err != nil {
				return err
			}
			defer end()
			if err := r.look(cmd.Context()); err != nil {
				return err
			}
			if dryRun {
				return r.tell()
			}
			return errors.Join(r.run(cmd.Context()), r.tell())
		})
	cmd.Flags().StringVar(&from, "from", "", "from this `LSN` or position on (default: where the pipeline began)")
	cmd.Flags().StringVar(&to, "to", "", "up to this `LSN` or position (default: the end)")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what there is to do")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return withSettings(cmd, "pipeline", "lake-url", "lake-endpoint", "temporal")
}

// replay is one run of the verb.
type replay struct {
	out      io.Writer
	asJSON   bool
	progress *progress
	pipeline string
	within   operator.Range
	lake     *lake.Lake
	operator *operator.Operator

	report replayReport
}

// replayReport is what replay prints.
type replayReport struct {
	Lake string `json:"lake"`
	// Quarantined are the segments in quarantine, Segments those that are open or
	// broken.
	Quarantined []replayItem `json:"quarantined"`
	Segments    []replayItem `json:"segments"`
	// Missing are ranges of which the lake has nothing though they were
	// acknowledged, Gaps those that are recorded.
	Missing []missingRange `json:"missing"`
	Gaps    []lake.Gap     `json:"gaps"`
	// Unreadable names objects in quarantine that are none of Tidemark's, or
	// damaged.
	Unreadable string `json:"unreadable,omitempty"`
}

// replayItem is one segment, and what becomes of it.
type replayItem struct {
	Ref   segment.Ref    `json:"ref"`
	State operator.State `json:"state"`
	// Outcome says in words what was done; empty if nothing was.
	Outcome string `json:"outcome,omitempty"`
	Failed  bool   `json:"failed,omitempty"`
}

// missingRange is what follows After, up to and including Through.
type missingRange struct {
	After   change.Position `json:"after"`
	Through change.Position `json:"through"`
}

// look finds what there is to do.
func (r *replay) look(ctx context.Context) error {
	// Quarantine first: what another replay moves meanwhile is then seen twice at
	// most.
	r.progress.doing("looking into quarantine")
	refs, unreadable := r.lake.Quarantined(ctx, r.within.Meets)
	if unreadable != nil && !errors.Is(unreadable, lake.ErrUnreadable) {
		return unreadable
	}
	report, err := verified(ctx, r.lake, r.progress)
	if err != nil {
		return err
	}
	segments, _, err := r.operator.List(ctx, operator.Filter{
		Range: r.within, States: []operator.State{operator.Running, operator.Retrying, operator.Waiting, operator.Broken},
	})
	if err != nil {
		return err
	}
	r.report = replayReport{Lake: r.lake.URL(), Quarantined: []replayItem{}, Segments: []replayItem{}, Missing: []missingRange{}, Gaps: []lake.Gap{}}
	for _, ref := range refs {
		if ref.Pipeline == r.pipeline {
			r.report.Quarantined = append(r.report.Quarantined, replayItem{Ref: ref, State: operator.Quarantined})
		}
	}
	for _, s := range segments {
		// What was acknowledged is in the lake, whatever became of its workflow.
		if report.Ack == nil || report.Ack.Last.Less(s.Ref.First) {
			r.report.Segments = append(r.report.Segments, replayItem{Ref: s.Ref, State: s.State})
		}
	}
	for _, f := range report.Findings {
		if !f.Through.IsZero() && r.within.Meets(f.After, f.Through) {
			r.report.Missing = append(r.report.Missing, missingRange{After: f.After, Through: f.Through})
		}
	}
	gaps, err := r.lake.Gaps(ctx)
	if err != nil {
		return err
	}
	for _, g := range gaps {
		if !g.Empty && r.within.Meets(g.Follows, g.Last) {
			r.report.Gaps = append(r.report.Gaps, g)
		}
	}
	if unreadable != nil {
		r.report.Unreadable = unreadable.Error()
	}
	return nil
}

// replaysAtOnce bounds the replays that are waited for at once.
const replaysAtOnce = 8

// run does what there is to do. The error says only that something has failed.
func (r *replay) run(ctx context.Context) error {
	var group errgroup.Group
	group.SetLimit(replaysAtOnce)
	var mu sync.Mutex
	ended := 0
	waiting := func(held string) {
		r.progress.doing("waiting for %d segments of quarantine to be decoded again, %d have ended%s", len(r.report.Quarantined), ended, held)
	}
	waiting("")
	for i := range r.report.Quarantined {
		item := &r.report.Quarantined[i]
		group.Go(func() error {
			result, err := r.operator.Replay(ctx, item.Ref, func(text string) {
				mu.Lock()
				defer mu.Unlock()
				held := fmt.Sprintf("segment %s: %s", item.Ref.First, oneLine(text))
				if !r.asJSON {
					fmt.Fprintln(r.out, held)
				}
				waiting("; " + held)
			})
			mu.Lock()
			defer mu.Unlock()
			ended++
			waiting("")
			switch {
			case err != nil:
				item.Outcome, item.Failed = err.Error(), true
			case len(result.Objects) > 0:
				item.Outcome = "is in the lake: " + result.Objects[0].Key
			}
			return nil
		})
	}
	_ = group.Wait() // what has failed stands in the items
	for i := range r.report.Segments {
		item := &r.report.Segments[i]
		if item.State != operator.Waiting {
			continue
		}
		item.Outcome = "is tried again"
		if err := r.operator.Retry(ctx, item.Ref.First); err != nil {
			item.Outcome, item.Failed = err.Error(), true
		}
	}
	failed := r.report.Unreadable != ""
	for _, item := range slices.Concat(r.report.Quarantined, r.report.Segments) {
		failed = failed || item.Failed
	}
	if failed {
		return &statusError{status: statusFailed} // tell says it all
	}
	return nil
}

// tell prints the report.
func (r *replay) tell() error {
	if r.asJSON {
		return printJSON(r.out, r.report)
	}
	return r.report.writeText(r.out)
}

func (r replayReport) writeText(w io.Writer) error {
	line := func(what, format string, args ...any) {
		fmt.Fprintf(w, "%-11s %s\n", what, fmt.Sprintf(format, args...))
	}
	for _, item := range r.Quarantined {
		outcome := item.Outcome
		if outcome == "" {
			outcome = "is to be decoded again"
		}
		line("quarantined", "segment %s, %d rows, %s", item.Ref.First, item.Ref.Rows, oneLine(outcome))
	}
	if r.Unreadable != "" {
		line("unreadable", "%s: tidemark verify shows it", oneLine(r.Unreadable))
	}
	for _, item := range r.Segments {
		outcome := item.Outcome
		switch {
		case outcome != "":
		case item.State == operator.Waiting:
			outcome = "is to be sent the update retry"
		case item.State == operator.Broken:
			outcome = "is started again by the streamer, which has its rows or reads them again: see that one runs"
		default:
			outcome = "goes on by itself: tidemark segments show has its attempts"
		}
		line(string(item.State), "segment %s, %d rows, %s", item.Ref.First, item.Ref.Rows, oneLine(outcome))
	}
	for _, m := range r.Missing {
		line("missing", "after %s up to %s: these changes were acknowledged, and no object and no streamer has them. Only a slot that stands before them could bring them again; else fill them from the database itself", m.After, m.Through)
	}
	for _, g := range r.Gaps {
		line("gap", "after %s up to %s, recorded: %s. Nothing brings it", g.Follows, g.Last, g.Reason)
	}
	if len(r.Quarantined)+len(r.Segments)+len(r.Missing)+len(r.Gaps) == 0 && r.Unreadable == "" {
		_, err := fmt.Fprintln(w, "There is nothing to replay.")
		return err
	}
	return nil
}
