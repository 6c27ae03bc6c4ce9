package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/tidemark-cdc/tidemark/activities"
)

// The pause between two attempts.
const (
	initialInterval = time.Second
	maximumInterval = time.Minute
)

// waitingDetails says in plain words what is wrong and what can be done.
func (r *run) waitingDetails(ctx workflow.Context, why error) string {
	ref := r.in.Ref
	info := workflow.GetInfo(ctx)
	update := func(name string) string {
		return fmt.Sprintf("`temporal workflow update execute --namespace %s --workflow-id %s --name %s`",
			info.Namespace, info.WorkflowExecution.ID, name)
	}
	details := fmt.Sprintf("**This segment waits for you.** Its %s (%s to %s) are not in the lake. No rows are lost while it waits, "+
		"but the ack stands still and Postgres keeps its WAL.\n\nWhy: %s\n\nWhen the cause is mended, try again: %s",
		counted(ref.Rows, "row"), ref.First.LSN, ref.Last.LSN, text(why), update(RetryUpdate))
	if undecodable(why) {
		details += "\n\nOr put the raw messages into quarantine and go on without these rows: " + update(QuarantineUpdate)
	}
	return details
}

// finishedDetails lists the objects.
func finishedDetails(result SegmentResult) string {
	details := "In the lake:\n"
	switch {
	case result.Quarantined:
		details = "The raw messages are in quarantine:\n"
	case result.Existed:
		details = "An earlier attempt had stored the object:\n"
	}
	for _, object := range result.Objects {
		details += fmt.Sprintf("\n- `%s`: %s, %s", object.Key, counted(object.Rows, "row"), size(object.Bytes))
	}
	return details
}

// text is an activity's error without Temporal's wrapping, which the UI shows
// beside it anyway.
func text(err error) string {
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return app.Message()
	}
	return err.Error()
}

// undecodable says whether quarantine is a way out.
func undecodable(err error) bool {
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	return ok && activities.Class(app.Type()).Undecodable()
}
