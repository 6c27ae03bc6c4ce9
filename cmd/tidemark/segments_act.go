package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/operator"
)

func newSegmentsRetry(sys system) *cobra.Command {
	var all bool
	cmd := verbOf("retry [position or workflow ID]...", "Have segments tried again now",
		`Send segments the update retry: a waiting one is uploaded again, and one that
pauses between two attempts does not wait for the next. All of them are looked
for before any is sent anything.`,
		cobra.ArbitraryArgs, withOperator(sys, func(cmd *cobra.Command, args []string, o *operator.Operator) error {
			segments, err := chosen(cmd.Context(), o, args, all, func(s operator.Segment) error {
				if !s.State.Open() {
					return fmt.Errorf("segment %s is %s: there is nothing to retry", s.Ref.First, s.State)
				}
				return nil
			})
			if err != nil {
				return err
			}
			return each(cmd.OutOrStdout(), segments, func(s operator.Segment) (string, error) {
				return "is tried again", o.Retry(cmd.Context(), s.Ref.First)
			})
		}))
	cmd.Flags().BoolVar(&all, "all-waiting", false, "all segments that wait for a person")
	return withSettings(cmd, "pipeline", "temporal")
}

func newSegmentsQuarantine(sys system) *cobra.Command {
	var all, yes bool
	cmd := verbOf("quarantine [position or workflow ID]...", "Put the raw messages of waiting segments aside and go on",
		`Send waiting segments the update quarantine, after asking: their raw messages go
to _quarantine/ in the lake, and the pipeline goes on without their rows, which
no reader of the lake sees until tidemark replay has decoded them. The chain
stays whole. It needs a worker, and the streamer that has the rows.`,
		cobra.ArbitraryArgs, withOperator(sys, func(cmd *cobra.Command, args []string, o *operator.Operator) error {
			segments, err := chosen(cmd.Context(), o, args, all, func(s operator.Segment) error {
				if s.State != operator.Waiting {
					return fmt.Errorf("segment %s is %s: quarantine is for one that waits", s.Ref.First, s.State)
				}
				return nil
			})
			if err != nil {
				return err
			}
			if !yes && len(segments) > 0 {
				if err := askQuarantine(cmd.OutOrStdout(), sys, segments); err != nil {
					return err
				}
			}
			return each(cmd.OutOrStdout(), segments, func(s operator.Segment) (string, error) {
				result, err := o.Quarantine(cmd.Context(), s.Ref.First)
				if err == nil && !result.Quarantined {
					return "was in the lake already", nil
				}
				return "is in quarantine", err
			})
		}))
	cmd.Flags().BoolVar(&all, "all-waiting", false, "all segments that wait for a person")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return withSettings(cmd, "pipeline", "temporal")
}

// chosen finds the segments that are named, or all that wait, and refuses all
// that cannot be acted upon at once, before anything is done.
func chosen(ctx context.Context, o *operator.Operator, args []string, all bool, may func(operator.Segment) error) ([]operator.Segment, error) {
	if all == (len(args) > 0) {
		return nil, refuse("name segments by their first position, or give --all-waiting: tidemark segments list shows them")
	}
	if all {
		segments, _, err := o.List(ctx, operator.Filter{States: []operator.State{operator.Waiting}})
		return segments, err
	}
	var refusals []error
	var firsts []change.Position
	for _, arg := range args {
		first, err := o.ParseID(arg)
		if err != nil {
			refusals = append(refusals, err)
		}
		firsts = append(firsts, first)
	}
	if len(refusals) > 0 {
		return nil, refused(errors.Join(refusals...))
	}
	var segments []operator.Segment
	for _, first := range firsts {
		d, err := o.Show(ctx, first)
		if err == nil {
			err = may(d.Segment)
		} else if !errors.Is(err, operator.ErrUnknown) {
			return nil, err
		}
		if err != nil {
			refusals = append(refusals, err)
			continue
		}
		segments = append(segments, d.Segment)
	}
	if len(refusals) > 0 {
		return nil, refused(errors.Join(refusals...))
	}
	return segments, nil
}

// each does something with every segment, whatever becomes of the others.
func each(w io.Writer, segments []operator.Segment, do func(operator.Segment) (string, error)) error {
	if len(segments) == 0 {
		fmt.Fprintln(w, "No segment waits: nothing to do.")
		return nil
	}
	var errs []error
	for _, s := range segments {
		done, err := do(s)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Fprintf(w, "segment %s %s\n", s.Ref.First, done)
	}
	return errors.Join(errs...)
}

// askQuarantine wants a yes from a person.
func askQuarantine(w io.Writer, sys system, segments []operator.Segment) error {
	if !sys.terminal() {
		return refuse("quarantine asks first, and nobody is there to answer: give --yes if you mean it")
	}
	rows := int64(0)
	for _, s := range segments {
		rows += s.Ref.Rows
		fmt.Fprintf(w, "segment %s, %d rows of %s\n", s.Ref.First, s.Ref.Rows, tablesText(s.Ref.Tables, s.Ref.TableCount, 4))
	}
	fmt.Fprintf(w, "The raw messages of these %d rows go to quarantine, and no reader of the lake sees them. Type yes to go on: ", rows)
	answer, err := bufio.NewReader(sys.stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if strings.TrimSpace(answer) != "yes" {
		return refuse("the answer was not yes: nothing was done")
	}
	return nil
}
