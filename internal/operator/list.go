package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/internal/tracker"
	"github.com/tidemark-cdc/tidemark/workflows"
)

// State is how a segment stands.
type State string

// The states of a segment.
const (
	// Running: it is being uploaded, or is to be.
	Running State = "running"
	// Retrying: an attempt has failed, and another one follows by itself.
	Retrying State = "retrying"
	// Waiting: it has failed for good and waits for a person.
	Waiting State = "waiting"
	// Done: its object is in the lake.
	Done State = "done"
	// Quarantined: its raw messages are in quarantine.
	Quarantined State = "quarantined"
	// Broken: its workflow was terminated, canceled or timed out, or has failed;
	// the streamer starts it again.
	Broken State = "broken"
	// GivenUp: a person has settled that its rows can never be uploaded (tidemark
	// resolve, setup --recreate-slot); nothing starts it again.
	GivenUp State = "given-up"
)

// States lists them all.
func States() []State {
	return []State{Running, Retrying, Waiting, Done, Quarantined, Broken, GivenUp}
}

// Open says that the segment's workflow is open.
func (s State) Open() bool { return s == Running || s == Retrying || s == Waiting }

// like says that visibility does not tell s from other: what is open can be in
// any of the open states, and what is broken may have been given up, until it is
// described.
func (s State) like(other State) bool {
	ended := func(s State) bool { return s == Broken || s == GivenUp }
	return s == other || s.Open() && other.Open() || ended(s) && ended(other)
}

// Segment is one segment, as Temporal knows it.
type Segment struct {
	State State `json:"state"`
	// WorkflowID and RunID are those of the run that State speaks of.
	WorkflowID string      `json:"workflow_id"`
	RunID      string      `json:"run_id"`
	Ref        segment.Ref `json:"ref"`
	Started    time.Time   `json:"started"`
	Closed     time.Time   `json:"closed,omitzero"`
	// Attempt is the number of the pending attempt, LastError why the one before
	// has failed, Next when it is to begin if it has not.
	Attempt   int32     `json:"attempt,omitempty"`
	LastError string    `json:"last_error,omitempty"`
	Next      time.Time `json:"next_attempt,omitzero"`
	// Replayed says that a quarantined segment's rows are in the lake by now.
	Replayed bool `json:"replayed,omitempty"`
}

// Filter picks segments. The zero Filter picks all.
type Filter struct {
	// States, if any, are those wanted.
	States []State
	// Table, if set, is one that the segment has changes of, as the lake names
	// it. Of a segment with many tables only the first segment.MaxTables count.
	Table string
	// Day, if set, is the UTC commit day.
	Day   *change.Day
	Range Range
	// Limit, if above zero, bounds the result to the last so many in stream
	// order: what is in flight is among them.
	Limit int
}

// List gives the segments that f picks, in stream order, and how many more
// Limit has left out. It reads what visibility knows, which holds closed
// workflows for as long as the namespace's retention says.
func (o *Operator) List(ctx context.Context, f Filter) (segments []Segment, more int, err error) {
	onlyOpen := len(f.States) > 0 && !slices.ContainsFunc(f.States, func(s State) bool { return !s.Open() })
	found, err := o.scan(ctx, workflows.SegmentName, f, onlyOpen)
	if err != nil {
		return nil, 0, err
	}
	var wanted []Segment
	for _, s := range found {
		if len(f.States) == 0 || slices.ContainsFunc(f.States, s.State.like) {
			wanted = append(wanted, s)
		}
	}
	if wanted, err = o.describe(ctx, wanted, f.States); err != nil {
		return nil, 0, err
	}
	slices.SortFunc(wanted, func(a, b Segment) int { return a.Ref.First.Compare(b.Ref.First) })
	if f.Limit > 0 && len(wanted) > f.Limit {
		more = len(wanted) - f.Limit
		wanted = wanted[more:]
	}
	if err := o.markReplayed(ctx, f, wanted); err != nil {
		return nil, 0, err
	}
	return wanted, more, nil
}

// scan lists the workflows of a type that f's day, table and range pick, the
// latest run of each.
func (o *Operator) scan(ctx context.Context, workflowType string, f Filter, onlyOpen bool) (map[string]Segment, error) {
	query := []string{"WorkflowType = " + quoted(workflowType), workflows.PipelineAttribute.GetName() + " = " + quoted(o.cfg.Pipeline)}
	if onlyOpen {
		query = append(query, "ExecutionStatus = 'Running'")
	}
	if f.Day != nil {
		query = append(query, workflows.DayAttribute.GetName()+" = "+quoted(f.Day.String()))
	}
	// A Temporal with SQLite does not find a name with a double quote.
	if f.Table != "" && !strings.ContainsAny(f.Table, `"\'`) {
		query = append(query, workflows.TablesAttribute.GetName()+" = "+quoted(f.Table))
	}
	found := map[string]Segment{}
	var page []byte
	for listed := 0; ; {
		o.cfg.Progress("asking Temporal for the workflows of pipeline %s: %d so far", o.cfg.Pipeline, listed)
		var response *workflowservice.ListWorkflowExecutionsResponse
		err := o.call(ctx, fmt.Sprintf("list the segments of pipeline %s", o.cfg.Pipeline), func(ctx context.Context) (err error) {
			response, err = o.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
				Namespace: o.cfg.Namespace, PageSize: 1000, NextPageToken: page, Query: strings.Join(query, " AND "),
			})
			return err
		})
		if err != nil {
			return nil, err
		}
		listed += len(response.GetExecutions())
		for _, info := range response.GetExecutions() {
			s, err := o.read(info)
			if errors.Is(err, tracker.ErrForeign) {
				continue // nobody's segment
			}
			if err != nil {
				return nil, err
			}
			if !f.Range.Meets(s.Ref.First, s.Ref.Last) || f.Table != "" && !slices.Contains(s.Ref.Tables, f.Table) {
				continue
			}
			if other, ok := found[s.WorkflowID]; !ok || other.Started.Before(s.Started) {
				found[s.WorkflowID] = s
			}
		}
		if page = response.GetNextPageToken(); len(page) == 0 {
			return found, nil
		}
	}
}

// quoted is a string of the query language.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// read makes a Segment of what Temporal says of a workflow.
func (o *Operator) read(info *workflowpb.WorkflowExecutionInfo) (Segment, error) {
	ref, err := tracker.RefOf(info, o.cfg.DataConverter)
	if err != nil {
		return Segment{}, err
	}
	s := Segment{
		WorkflowID: info.GetExecution().GetWorkflowId(), RunID: info.GetExecution().GetRunId(), Ref: ref,
		Started: info.GetStartTime().AsTime(), State: o.stateOf(info),
	}
	if t := info.GetCloseTime(); t != nil {
		s.Closed = t.AsTime()
	}
	return s, nil
}

func (o *Operator) stateOf(info *workflowpb.WorkflowExecutionInfo) State {
	var state string
	if p, ok := info.GetSearchAttributes().GetIndexedFields()[workflows.StateAttribute.GetName()]; ok {
		// Search attributes are plain JSON whatever the client's converter.
		_ = o.cfg.DataConverter.FromPayload(p, &state)
	}
	switch info.GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		if state == string(workflows.Quarantined) {
			return Quarantined
		}
		return Done
	case enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED,
		enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return Broken
	}
	if state == string(workflows.Waiting) {
		return Waiting
	}
	return Running
}

// atOnce bounds the workflows that are described at once.
const atOnce = 16

// describe asks how those stand that are open, and why those ended that are
// broken, and keeps the ones in the wanted states.
func (o *Operator) describe(ctx context.Context, segments []Segment, states []State) ([]Segment, error) {
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range segments {
		s := &segments[i]
		if s.State != Broken && !s.State.Open() {
			continue
		}
		o.cfg.Progress("asking Temporal how segments stand: %d of %d", i+1, len(segments))
		group.Go(func() error {
			if s.State == Broken {
				return o.settled(gctx, s)
			}
			response, err := o.described(gctx, s.WorkflowID)
			if errors.Is(err, ErrUnknown) {
				return nil // deleted since it was listed
			}
			if err != nil {
				return err
			}
			return o.fill(gctx, s, response)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if len(states) > 0 {
		segments = slices.DeleteFunc(segments, func(s Segment) bool { return !slices.Contains(states, s.State) })
	}
	return segments, nil
}

func (o *Operator) described(ctx context.Context, id string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	var response *workflowservice.DescribeWorkflowExecutionResponse
	err := o.call(ctx, "describe workflow "+id, func(ctx context.Context) (err error) {
		response, err = o.temporal.DescribeWorkflowExecution(ctx, id, "")
		return err
	})
	var none *serviceerror.NotFound
	if errors.As(err, &none) {
		return nil, fmt.Errorf("workflow %s: %w: it may be older than the namespace's retention, or begin elsewhere (tidemark segments list)", id, ErrUnknown)
	}
	return response, err
}

// fill makes s what a description says, which is newer than visibility.
func (o *Operator) fill(ctx context.Context, s *Segment, response *workflowservice.DescribeWorkflowExecutionResponse) error {
	now, err := o.read(response.GetWorkflowExecutionInfo())
	if err != nil {
		return err
	}
	*s = now
	for _, a := range response.GetPendingActivities() {
		s.Attempt = a.GetAttempt()
		s.LastError = a.GetLastFailure().GetMessage()
		if t := a.GetNextAttemptScheduleTime(); t != nil {
			s.Next = t.AsTime()
		}
		if s.State == Running && a.GetAttempt() > 1 {
			s.State = Retrying
		}
	}
	if s.State == Waiting && s.LastError == "" {
		story, err := o.story(ctx, s.WorkflowID, s.RunID)
		if err != nil {
			return err
		}
		s.LastError = story.lastError
	}
	return nil
}

// settled finds out whether a broken segment was given up, which visibility does
// not know.
func (o *Operator) settled(ctx context.Context, s *Segment) error {
	story, err := o.story(ctx, s.WorkflowID, s.RunID)
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) {
		return nil // deleted since it was listed
	}
	if story.givenUp {
		s.State = GivenUp
	}
	return err
}

// markReplayed finds out which of the quarantined ones are in the lake by now.
func (o *Operator) markReplayed(ctx context.Context, f Filter, segments []Segment) error {
	if !slices.ContainsFunc(segments, func(s Segment) bool { return s.State == Quarantined }) {
		return nil
	}
	f.Table = "" // a replay does not know the tables
	replays, err := o.scan(ctx, workflows.ReplayName, f, false)
	if err != nil {
		return err
	}
	for i := range segments {
		s := &segments[i]
		s.Replayed = s.State == Quarantined && replays[workflows.ReplayID(s.Ref)].State == Done
	}
	return nil
}
