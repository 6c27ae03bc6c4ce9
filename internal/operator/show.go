package operator

import (
	"context"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/tidemark-cdc/tidemark/activities"
	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/workflows"
)

// Details are all that Temporal knows of one segment.
type Details struct {
	Segment
	// Source is where the rows are, or were, said to be.
	Source segment.Location `json:"source"`
	// Attempts counts the attempts of this run, the pending one included.
	Attempts int32 `json:"attempts"`
	// Pending is the attempt that is under way or next; nil if there is none.
	Pending *Pending `json:"pending,omitempty"`
	// Objects are in the lake, or in quarantine.
	Objects []activities.Object `json:"objects"`
	// Existed says that an earlier attempt had stored them.
	Existed bool `json:"existed,omitempty"`
	// Ended says how a broken run was closed.
	Ended string `json:"ended,omitempty"`
	// Link is the run's page in Temporal's UI; empty if no UI is configured.
	Link string `json:"link,omitempty"`
}

// Pending is an attempt that has not ended.
type Pending struct {
	Activity string `json:"activity"`
	Attempt  int32  `json:"attempt"`
	// Began is zero while it waits for its time or for a worker.
	Began  time.Time `json:"began,omitzero"`
	Worker string    `json:"worker,omitempty"`
	// Progress is what its last heartbeat has said.
	Progress *activities.Progress `json:"progress,omitempty"`
	// Paused says that somebody has paused the activity in Temporal.
	Paused bool `json:"paused,omitempty"`
}

// Find gives the segment that begins at first as it stands now, and the attempt
// that is under way or next; nil if there is none. ErrUnknown.
func (o *Operator) Find(ctx context.Context, first change.Position) (Segment, *Pending, error) {
	response, err := o.described(ctx, o.id(first))
	if err != nil {
		return Segment{}, nil, err
	}
	var s Segment
	if err := o.fill(ctx, &s, response); err != nil {
		return Segment{}, nil, err
	}
	var pending *Pending
	for _, a := range response.GetPendingActivities() {
		pending = o.pending(a)
	}
	return s, pending, nil
}

// Show gives the details of the segment that begins at first. ErrUnknown.
func (o *Operator) Show(ctx context.Context, first change.Position) (Details, error) {
	response, err := o.described(ctx, o.id(first))
	if err != nil {
		return Details{}, err
	}
	d := Details{Objects: []activities.Object{}}
	if err := o.fill(ctx, &d.Segment, response); err != nil {
		return Details{}, err
	}
	story, err := o.story(ctx, d.WorkflowID, d.RunID)
	if err != nil {
		return Details{}, err
	}
	d.Source, d.Attempts, d.Ended = story.source, story.attempts, story.ended
	if story.givenUp {
		d.State = GivenUp
	}
	if story.result != nil {
		d.Objects, d.Existed = story.result.Objects, story.result.Existed
	}
	if d.LastError == "" {
		d.LastError = story.lastError
	}
	for _, a := range response.GetPendingActivities() {
		d.Attempts += a.GetAttempt() - 1 // the first is in the history
		d.Pending = o.pending(a)
	}
	d.Link = o.Link(d.WorkflowID, d.RunID)
	if d.State == Quarantined {
		one := []Segment{d.Segment}
		if err := o.markReplayed(ctx, Filter{Day: &d.Ref.Day}, one); err != nil {
			return Details{}, err
		}
		d.Segment = one[0]
	}
	return d, nil
}

func (o *Operator) pending(a *workflowpb.PendingActivityInfo) *Pending {
	p := &Pending{Activity: a.GetActivityType().GetName(), Attempt: a.GetAttempt(), Worker: a.GetLastWorkerIdentity(), Paused: a.GetPaused()}
	if t := a.GetLastStartedTime(); t != nil && a.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED {
		p.Began = t.AsTime()
	}
	var progress activities.Progress
	if a.GetHeartbeatDetails() != nil && o.cfg.DataConverter.FromPayloads(a.GetHeartbeatDetails(), &progress) == nil {
		p.Progress = &progress
	}
	return p
}

// story is what a run's history tells.
type story struct {
	source    segment.Location
	attempts  int32
	lastError string
	result    *workflows.SegmentResult
	ended     string
	givenUp   bool
}

// story reads a run's history, which has a few dozen events at most: retries
// leave none.
func (o *Operator) story(ctx context.Context, id, runID string) (story, error) {
	var st story
	err := o.call(ctx, "read the history of workflow "+id, func(ctx context.Context) error {
		for events := o.temporal.GetWorkflowHistory(ctx, id, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
			event, err := events.Next()
			if err != nil {
				return err
			}
			o.tell(&st, event)
		}
		return nil
	})
	return st, err
}

// tell adds one event. What cannot be decoded is left out: it is for people.
func (o *Operator) tell(st *story, event *historypb.HistoryEvent) {
	decode := func(p *commonpb.Payloads, into any) bool {
		return p != nil && o.cfg.DataConverter.FromPayloads(p, into) == nil
	}
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		var in workflows.SegmentInput
		if decode(event.GetWorkflowExecutionStartedEventAttributes().GetInput(), &in) {
			st.source = in.Source
		}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		var at segment.Location
		signal := event.GetWorkflowExecutionSignaledEventAttributes()
		if signal.GetSignalName() == workflows.SourceSignal && decode(signal.GetInput(), &at) && at != (segment.Location{}) {
			st.source = at
		}
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		st.attempts++
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
		// Written at the end of an activity, with the number of its last attempt.
		started := event.GetActivityTaskStartedEventAttributes()
		st.attempts += started.GetAttempt() - 1
		if f := started.GetLastFailure(); f != nil {
			st.lastError = f.GetMessage()
		}
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED:
		st.lastError = failureText(event.GetActivityTaskFailedEventAttributes().GetFailure())
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
		st.lastError = failureText(event.GetActivityTaskTimedOutEventAttributes().GetFailure())
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		var result workflows.SegmentResult
		if decode(event.GetWorkflowExecutionCompletedEventAttributes().GetResult(), &result) {
			st.result = &result
		}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		st.ended = "failed: " + failureText(event.GetWorkflowExecutionFailedEventAttributes().GetFailure())
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
		terminated := event.GetWorkflowExecutionTerminatedEventAttributes()
		st.givenUp = strings.HasPrefix(terminated.GetReason(), segment.GivenUpReason)
		st.ended = "terminated by " + terminated.GetIdentity()
		if terminated.GetReason() != "" {
			st.ended += ": " + terminated.GetReason()
		}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		st.ended = "canceled"
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		st.ended = "timed out"
	}
}

// failureText is the cause at the bottom of a failure: what is above it is
// Temporal's.
func failureText(f *failurepb.Failure) string {
	for f.GetCause() != nil {
		f = f.GetCause()
	}
	return f.GetMessage()
}
