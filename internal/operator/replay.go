package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/internal/tracker"
	"github.com/tidemark-cdc/tidemark/workflows"
)

// Replay has a quarantined segment decoded again, by a workflow of its own, and
// waits for that. A replay of it that is open already is joined. ref is what the
// object in quarantine says. say, if set, is told once of each thing that holds
// it up. When ctx ends the workflow goes on.
func (o *Operator) Replay(ctx context.Context, ref segment.Ref, say func(string)) (workflows.SegmentResult, error) {
	id := workflows.ReplayID(ref)
	var run client.WorkflowRun
	err := o.call(ctx, "start workflow "+id, func(ctx context.Context) (err error) {
		run, err = o.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
			ID: id, TaskQueue: o.cfg.TaskQueue,
			WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
			WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
			Memo:                     map[string]any{tracker.MemoRef: ref},
			TypedSearchAttributes:    workflows.Attributes(ref),
			StaticSummary:            "replay of " + workflows.Summary(ref),
			StaticDetails:            workflows.Details(ref),
		}, workflows.ReplayName, workflows.ReplayInput{Version: workflows.Version, Ref: ref})
		return err
	})
	if err != nil {
		return workflows.SegmentResult{}, err
	}
	return o.await(ctx, run, id, say)
}

// lookEvery is how often a replay that goes on is looked at.
const lookEvery = 3 * time.Second

// await waits for a replay's end, and says what holds it up meanwhile.
func (o *Operator) await(ctx context.Context, run client.WorkflowRun, id string, say func(string)) (workflows.SegmentResult, error) {
	said := ""
	for {
		var result workflows.SegmentResult
		bounded, cancel := context.WithTimeout(ctx, lookEvery)
		err := run.Get(bounded, &result)
		passed := bounded.Err() != nil
		cancel()
		var failed *temporal.ApplicationError
		switch {
		case err == nil:
			return result, nil
		case errors.As(err, &failed):
			return workflows.SegmentResult{}, errors.New(failed.Message())
		case ctx.Err() != nil:
			return workflows.SegmentResult{}, fmt.Errorf("workflow %s is not waited for any more, and goes on: %w", id, context.Cause(ctx))
		case !passed:
			return workflows.SegmentResult{}, o.failed("wait for workflow "+id, err)
		}
		if held := o.heldUp(ctx, id); held != "" && held != said && say != nil {
			said = held
			say(held)
		}
	}
}

// heldUp says why a workflow goes on for so long; empty if that is not known.
func (o *Operator) heldUp(ctx context.Context, id string) string {
	response, err := o.described(ctx, id)
	if err != nil {
		return err.Error()
	}
	for _, a := range response.GetPendingActivities() {
		if f := a.GetLastFailure(); f != nil {
			return "an attempt has failed, and another one follows by itself: " + f.GetMessage()
		}
		if a.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED {
			return o.nobody()
		}
		return ""
	}
	if response.GetWorkflowExecutionInfo().GetHistoryLength() <= 3 && response.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return o.nobody()
	}
	return ""
}

func (o *Operator) nobody() string {
	return fmt.Sprintf("no worker has taken it yet: does a tidemark worker run on the task queue %s?", o.cfg.TaskQueue)
}
