package operator

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/workflows"
)

// Retry has another attempt made now. It returns when the workflow has taken
// that up.
func (o *Operator) Retry(ctx context.Context, first change.Position) error {
	return o.update(ctx, first, workflows.RetryUpdate, nil)
}

// Quarantine puts the raw messages of a waiting segment aside, and returns when
// that is done.
func (o *Operator) Quarantine(ctx context.Context, first change.Position) (workflows.SegmentResult, error) {
	var result workflows.SegmentResult
	err := o.update(ctx, first, workflows.QuarantineUpdate, &result)
	return result, err
}

// update sends an update and waits for its end.
func (o *Operator) update(ctx context.Context, first change.Position, name string, result any) error {
	id := o.id(first)
	action := fmt.Sprintf("send the update %s to workflow %s", name, id)
	ctx, cancel := context.WithTimeout(ctx, o.cfg.UpdateTimeout)
	defer cancel()
	o.cfg.Progress("waiting for workflow %s to take the update %s, at most %s", id, name, o.cfg.UpdateTimeout)
	handle, err := o.temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: name, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(ctx, result)
	}
	var none *serviceerror.NotFound
	var refused *temporal.ApplicationError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		// What the workflow itself has said.
		return fmt.Errorf("%s: %s", action, refused.Message())
	case errors.As(err, &none):
		return fmt.Errorf("%s: its workflow is not open: see tidemark segments show %s", action, first)
	case ctx.Err() != nil:
		return fmt.Errorf("%s: it was not done within %s: does a tidemark worker run on the task queue %s? It may still be done later: see tidemark segments show %s",
			action, o.cfg.UpdateTimeout, o.cfg.TaskQueue, first)
	}
	return o.failed(action, err)
}
