package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// step is one thing that a verb that acts has found, done or left as it was, or
// would do.
type step struct {
	// What it is about, such as slot; of what resolve and setup --recreate-slot
	// find, have to do and have done, one of these three words.
	What string `json:"what"`
	// Outcome is one of the constants below; empty where Text is all there is.
	Outcome string `json:"outcome,omitempty"`
	// Text is the line for people.
	Text string `json:"text"`
	// Fix is what to do about it, of findings.
	Fix string `json:"fix,omitempty"`

	// What the step is about, as far as it is at hand. LSN is where a slot or a
	// lake begins.
	Slot        string          `json:"slot,omitempty"`
	Publication string          `json:"publication,omitempty"`
	Lake        string          `json:"lake,omitempty"`
	LSN         change.LSN      `json:"lsn,omitzero"`
	SystemID    string          `json:"system_id,omitempty"`
	Namespace   string          `json:"namespace,omitempty"`
	Segment     change.Position `json:"segment,omitzero"`
	WorkflowID  string          `json:"workflow_id,omitempty"`
}

// became gives the step with an outcome.
func (s step) became(outcome string) step {
	s.Outcome = outcome
	return s
}

// The outcomes of steps. They are part of what --json promises.
const (
	outcomeMade        = "made"
	outcomeExists      = "exists"  // it was there, and is as it was
	outcomeMissing     = "missing" // --dry-run: it would be made
	outcomeDropped     = "dropped"
	outcomeGone        = "gone"    // it was dropped before
	outcomeNothing     = "nothing" // there is nothing to do
	outcomeSettled     = "settled" // the streamer can be started again
	outcomeRetried     = "retried"
	outcomeQuarantined = "quarantined"
	outcomeStored      = "stored"  // in the lake already
	outcomeFailed      = "failed"  // so is the verb, in the end
	outcomeRefused     = "refused" // nothing is done because of it
)

// steps tells the steps of a verb as they happen: a line each, or with --json an
// object a line.
type steps struct {
	out    io.Writer
	asJSON bool
}

// say tells a step; people see its What first.
func (s steps) say(of step, format string, args ...any) {
	of.Text = fmt.Sprintf(format, args...)
	if s.asJSON {
		s.object(of)
		return
	}
	fmt.Fprintf(s.out, "%-12s %s\n", of.What, of.Text)
}

// sentence is say for a text that people understand by itself.
func (s steps) sentence(of step, format string, args ...any) {
	of.Text = fmt.Sprintf(format, args...)
	if s.asJSON {
		s.object(of)
		return
	}
	fmt.Fprintln(s.out, of.Text)
}

func (s steps) object(of step) {
	enc := json.NewEncoder(s.out)
	enc.SetEscapeHTML(false)
	// It fails as Fprintf does: nobody reads along.
	_ = enc.Encode(of)
}

// refusal is the error that lists all findings of level error, nil without one.
// With --json they are steps too.
func (s steps) refusal(findings []finding) error {
	for _, f := range findings {
		if s.asJSON && f.Level == levelError {
			s.say(step{What: f.About, Outcome: outcomeRefused, Fix: f.Fix}, "%s", oneLine(f.What))
		}
	}
	return refusal(findings)
}

// stepsFlag adds --json to a verb that tells steps.
func stepsFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "print JSON, an object a line for each step")
}

// mayAsk refuses --json where a verb would ask.
func mayAsk(asJSON, yes bool) error {
	if asJSON && !yes {
		return refuse("--json does not ask: give --yes too")
	}
	return nil
}
