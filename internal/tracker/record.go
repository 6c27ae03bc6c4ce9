package tracker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/workflows"
)

// MemoRef is the memo's key for the segment's reference as JSON. It never
// changes: a record outlives the streamer that made it.
const MemoRef = "ref"

// Describe returns what Temporal knows of the segment that begins at first: of
// its open run, or else of the latest.
func (t *Tracker) Describe(ctx context.Context, pipeline string, first change.Position) (segment.Record, error) {
	id := segment.WorkflowID(pipeline, first)
	var info *workflowpb.WorkflowExecutionInfo
	err := t.call(ctx, fmt.Sprintf("describe workflow %s", id), func(ctx context.Context) error {
		response, err := t.client.DescribeWorkflowExecution(ctx, id, "")
		info = response.GetWorkflowExecutionInfo()
		return err
	})
	var none *serviceerror.NotFound
	switch {
	case errors.As(err, &none):
		return segment.Record{State: segment.None}, nil
	case err != nil:
		return segment.Record{}, err
	}
	ref, err := RefOf(info, t.cfg.DataConverter)
	if err != nil {
		return segment.Record{}, err
	}
	if ref.Pipeline != pipeline || ref.First != first {
		return segment.Record{}, foreign(id, fmt.Sprintf("its memo speaks of segment %s of pipeline %q", ref.First, ref.Pipeline))
	}
	rec := segment.Record{RunID: info.GetExecution().GetRunId(), Ref: ref}
	if at := info.GetStartTime(); at != nil {
		rec.Since = at.AsTime()
	}
	switch info.GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		rec.State = segment.Completed
	case enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED,
		enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		rec.State = segment.Broken
		rec.Reason = t.reason(ctx, id, rec.RunID, info.GetStatus())
		rec.GivenUp = strings.HasPrefix(rec.Reason, "terminated: "+segment.GivenUpReason)
	default:
		// Running, paused, or a state that a later server has come up with: what
		// is not known to be closed is waited for.
		rec.State = segment.Running
	}
	return rec, nil
}

// RefOf reads the reference out of the memo of a segment's workflow, or of its
// replay's. ErrForeign if it is neither. dc is the client's converter.
func RefOf(info *workflowpb.WorkflowExecutionInfo, dc converter.DataConverter) (segment.Ref, error) {
	id := info.GetExecution().GetWorkflowId()
	if name := info.GetType().GetName(); name != workflows.SegmentName && name != workflows.ReplayName {
		return segment.Ref{}, foreign(id, fmt.Sprintf("it is of the type %q", name))
	}
	payload, ok := info.GetMemo().GetFields()[MemoRef]
	if !ok {
		return segment.Ref{}, foreign(id, fmt.Sprintf("its memo has no %q", MemoRef))
	}
	var ref segment.Ref
	if err := dc.FromPayload(payload, &ref); err != nil {
		return segment.Ref{}, foreign(id, fmt.Sprintf("its memo cannot be read: %v", err))
	}
	if err := ref.Validate(); err != nil {
		return segment.Ref{}, foreign(id, fmt.Sprintf("its memo makes no sense: %v", err))
	}
	return ref, nil
}

func foreign(id, what string) error {
	return fmt.Errorf("workflow %s: %w: %s; find out who started it, and whether two pipelines of this name share the namespace", id, ErrForeign, what)
}

// reason says how a run ended, as far as Temporal tells: it is for people, so a
// failure to find out more leaves the bare status.
func (t *Tracker) reason(ctx context.Context, id, runID string, status enumspb.WorkflowExecutionStatus) string {
	word := strings.ToLower(status.String())
	ctx, cancel := context.WithTimeout(ctx, t.cfg.CallTimeout)
	defer cancel()
	events := t.client.GetWorkflowHistory(ctx, id, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	if !events.HasNext() {
		return word
	}
	event, err := events.Next()
	if err != nil {
		return word
	}
	if more := closing(event); more != "" {
		return word + ": " + more
	}
	return word
}

func closing(event *historypb.HistoryEvent) string {
	if failed := event.GetWorkflowExecutionFailedEventAttributes(); failed != nil {
		return failed.GetFailure().GetMessage()
	}
	return event.GetWorkflowExecutionTerminatedEventAttributes().GetReason()
}

// firstLook is how long a run is awaited before it is looked at. The next look
// comes after twice the time, and so on up to mostLook.
const (
	firstLook = time.Second
	mostLook  = time.Minute
)

// Await waits until the segment's run closes and returns the record of what
// stands then: Running if a reset or another streamer's restart has opened
// another run, which may have to be told where the rows are, and is to be
// awaited in its turn. None means that the workflow has vanished. It never looks
// at visibility; each call holds one long poll, so the caller bounds their
// number by the segments it has in flight.
//
// A poll may miss the end: the server drops a notification whose subscriber has
// not taken the one before yet (service/history/events/notifier.go of Temporal),
// which happens under load, and then the ack would stand still until the poll
// expires, 20 s by default. So the run is looked at besides.
func (t *Tracker) Await(ctx context.Context, rec segment.Record) (segment.Record, error) {
	id := rec.Ref.WorkflowID()
	for look := firstLook; ; look = min(2*look, mostLook) {
		var expired bool
		err := t.poll(ctx, fmt.Sprintf("wait for workflow %s", id), func(ctx context.Context) error {
			bounded, cancel := context.WithTimeout(ctx, look)
			defer cancel()
			err := closed(t.client.GetWorkflow(bounded, id, rec.RunID).Get(bounded, nil))
			if expired = bounded.Err() != nil && ctx.Err() == nil; expired {
				return nil
			}
			return err
		})
		if err != nil {
			return segment.Record{}, err
		}
		// How the run ended is read again, and not taken from the poll: it may
		// have been closed by a reset, and then another one is open.
		now, err := t.Describe(ctx, rec.Ref.Pipeline, rec.Ref.First)
		if err != nil || now.State != segment.Running || now.RunID != rec.RunID {
			return now, err
		}
		if expired {
			continue
		}
		// Closed and open at once: one of the two was a stale answer.
		if err := pause(ctx, t.cfg.MinBackoff); err != nil {
			return segment.Record{}, fmt.Errorf("wait for workflow %s: %w", id, err)
		}
	}
}

// closed tells the end of a run, whatever it was, from a failure to hear of it.
func closed(err error) error {
	var ended *temporal.WorkflowExecutionError
	var vanished *serviceerror.NotFound
	if errors.As(err, &ended) || errors.As(err, &vanished) {
		return nil
	}
	return err
}
