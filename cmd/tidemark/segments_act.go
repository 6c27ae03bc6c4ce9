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
	var all, asJSON bool
	cmd := verbOf("retry [position or workflow ID]...", "Have segments tried again now",
		`Send segments the update retry: a waiting one is uploaded again, and one that
pauses between two attempts does not wait for the next. All of them are looked
for before any is sent anything.`,
		cobra.ArbitraryArgs, withOperator(sys, func(cmd *cobra.Command, args []string, o *operator.Operator, _ *progress) error {
			return retrySegments(cmd.Context(), o, args, all, steps{cmd.OutOrStdout(), asJSON})
		}))
	cmd.Flags().BoolVar(&all, "all-waiting", false, "all segments that wait for a person")
	stepsFlag(cmd, &asJSON)
	return withSettings(cmd, "pipeline", "temporal")
}

func retrySegments(ctx context.Context, o *operator.Operator, args []string, all bool, told steps) error {
	segments, err := chosen(ctx, o, args, all, func(s operator.Segment) error {
		if !s.State.Open() {
			return fmt.Errorf("segment %s is %s: there is nothing to retry", s.Ref.First, s.State)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return each(told, segments, func(s operator.Segment) (outcome, text string, err error) {
		return outcomeRetried, "is tried again", o.Retry(ctx, s.Ref.First)
	})
}

func newSegmentsQuarantine(sys system) *cobra.Command {
	var all, yes, asJSON bool
	quarantine := withOperator(sys, func(cmd *cobra.Command, args []string, o *operator.Operator, p *progress) error {
		told := steps{cmd.OutOrStdout(), asJSON}
		return quarantineSegments(cmd.Context(), o, args, all, told, func(segments []operator.Segment) error {
			if yes {
				return nil
			}
			p.idle()
			return askQuarantine(told.out, sys, segments)
		})
	})
	cmd := verbOf("quarantine [position or workflow ID]...", "Put the raw messages of waiting segments aside and go on",
		`Send waiting segments the update quarantine, after asking: their raw messages go
to _quarantine/ in the lake, and the pipeline goes on without their rows, which
no reader of the lake sees until tidemark replay has decoded them. The chain
stays whole. It needs a worker, and the streamer that has the rows.`,
		cobra.ArbitraryArgs, func(cmd *cobra.Command, args []string) error {
			if err := mayAsk(asJSON, yes); err != nil {
				return err
			}
			return quarantine(cmd, args)
		})
	cmd.Flags().BoolVar(&all, "all-waiting", false, "all segments that wait for a person")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	stepsFlag(cmd, &asJSON)
	return withSettings(cmd, "pipeline", "temporal")
}

// quarantineSegments quarantines what ask has no error for.
func quarantineSegments(ctx context.Context, o *operator.Operator, args []string, all bool, told steps, ask func([]operator.Segment) error) error {
	segments, err := chosen(ctx, o, args, all, func(s operator.Segment) error {
		if s.State != operator.Waiting {
			return fmt.Errorf("segment %s is %s: quarantine is for one that waits", s.Ref.First, s.State)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(segments) > 0 {
		if err := ask(segments); err != nil {
			return err
		}
	}
	return each(told, segments, func(s operator.Segment) (outcome, text string, err error) {
		result, err := o.Quarantine(ctx, s.Ref.First)
		if err == nil && !result.Quarantined {
			return outcomeStored, "was in the lake already", nil
		}
		return outcomeQuarantined, "is in quarantine", err
	})
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
func each(told steps, segments []operator.Segment, do func(operator.Segment) (outcome, text string, err error)) error {
	if len(segments) == 0 {
		told.sentence(step{What: "segment", Outcome: outcomeNothing}, "No segment waits: nothing to do.")
		return nil
	}
	var errs []error
	for _, s := range segments {
		about := step{What: "segment", Segment: s.Ref.First, WorkflowID: s.WorkflowID}
		outcome, text, err := do(s)
		switch {
		case err == nil:
			told.sentence(about.became(outcome), "segment %s %s", s.Ref.First, text)
			continue
		case told.asJSON:
			told.sentence(about.became(outcomeFailed), "%s", oneLine(err.Error()))
		}
		errs = append(errs, err)
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
