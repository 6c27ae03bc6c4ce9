package tracker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/workflows"
)

// Unfinished gives the recorded segments of a pipeline that begin after a
// position and have not completed: Running ones, and Broken ones that nobody has
// given up. It finds them by Temporal's visibility, which may lag behind by
// seconds, so one that was recorded just now can be missing.
func (t *Tracker) Unfinished(ctx context.Context, pipeline string, after change.Position) ([]segment.Record, error) {
	prefix := segment.WorkflowID(pipeline, change.Position{})
	prefix = prefix[:len(prefix)-change.PositionLen]
	seen := map[change.Position]bool{}
	var page []byte
	for {
		var response *workflowservice.ListWorkflowExecutionsResponse
		err := t.call(ctx, "list the segments of pipeline "+pipeline, func(ctx context.Context) (err error) {
			response, err = t.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
				Namespace: t.cfg.Namespace, NextPageToken: page,
				Query: fmt.Sprintf("%s = '%s' AND WorkflowType = '%s' AND ExecutionStatus != 'Completed'",
					workflows.PipelineAttribute.GetName(), strings.ReplaceAll(pipeline, "'", "''"), workflows.SegmentName),
			})
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, info := range response.GetExecutions() {
			name, ok := strings.CutPrefix(info.GetExecution().GetWorkflowId(), prefix)
			if first, err := change.ParsePosition(name); ok && err == nil && after.Less(first) {
				seen[first] = true
			}
		}
		if page = response.GetNextPageToken(); len(page) == 0 {
			break
		}
	}
	var records []segment.Record
	for first := range seen {
		rec, err := t.Describe(ctx, pipeline, first)
		if err != nil {
			return nil, err
		}
		if rec.State == segment.Running || rec.State == segment.Broken && !rec.GivenUp {
			records = append(records, rec)
		}
	}
	segment.Sort(records)
	return records, nil
}

// GiveUp ends a segment for good: why says for people why it can never be
// finished. uploading says that an attempt was under way: it learns of the end
// with its next heartbeat, and could store the object until then. A segment
// that has completed meanwhile stays completed.
func (t *Tracker) GiveUp(ctx context.Context, rec segment.Record, why string) (uploading bool, err error) {
	id := rec.Ref.WorkflowID()
	if rec.State == segment.Broken {
		// Only an open run can be given a reason.
		if rec, err = t.start(ctx, rec.Ref, segment.Location{Instance: "nobody"}, true); err != nil {
			return false, err
		}
	}
	if rec.State != segment.Running {
		return false, nil
	}
	err = t.call(ctx, "look at workflow "+id, func(ctx context.Context) error {
		response, err := t.client.DescribeWorkflowExecution(ctx, id, "")
		for _, a := range response.GetPendingActivities() {
			uploading = uploading || a.GetState() != enumspb.PENDING_ACTIVITY_STATE_SCHEDULED
		}
		return err
	})
	if err == nil {
		err = t.call(ctx, "terminate workflow "+id, func(ctx context.Context) error {
			return t.client.TerminateWorkflow(ctx, id, "", segment.GivenUpReason+why)
		})
	}
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) {
		return uploading, nil // it has closed meanwhile
	}
	return uploading, err
}
