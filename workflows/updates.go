package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/workflow"
)

func (r *run) handleUpdates(ctx workflow.Context) error {
	err := workflow.SetUpdateHandlerWithOptions(ctx, RetryUpdate, r.onRetry, workflow.UpdateHandlerOptions{
		Validator:   r.mayRetry,
		Description: "Try again now, instead of waiting for the next attempt.",
	})
	if err != nil {
		return fmt.Errorf("register update %s: %w", RetryUpdate, err)
	}
	err = workflow.SetUpdateHandlerWithOptions(ctx, QuarantineUpdate, r.onQuarantine, workflow.UpdateHandlerOptions{
		Validator:   r.mayQuarantine,
		Description: "Put the raw messages of a waiting segment into _quarantine/ and go on without its rows.",
		// A canceled workflow ends without waiting for the update.
		UnfinishedPolicy: workflow.HandlerUnfinishedPolicyAbandon,
	})
	if err != nil {
		return fmt.Errorf("register update %s: %w", QuarantineUpdate, err)
	}
	return nil
}

func (r *run) mayRetry(workflow.Context) error {
	switch {
	case r.quarantining || r.command == quarantine:
		return errors.New("the segment is being put into quarantine: it cannot be uploaded any more")
	case r.state == Done || r.state == Quarantined:
		return fmt.Errorf("the segment is %s: there is nothing to retry", r.state)
	}
	return nil
}

func (r *run) onRetry(workflow.Context) (RetryReply, error) {
	r.command = retry
	return RetryReply{Message: "the upload is scheduled again"}, nil
}

func (r *run) mayQuarantine(workflow.Context) error {
	switch {
	case r.quarantining || r.command == quarantine:
		return errors.New("the segment is being put into quarantine already")
	case r.command == retry:
		return errors.New("the segment is being uploaded again: quarantine is for one that waits")
	case r.state != Waiting:
		return fmt.Errorf("the segment is %s: quarantine is for one that waits after a permanent error", r.state)
	}
	return nil
}

// onQuarantine returns when the messages are put aside, or with the error that
// made the segment wait again.
func (r *run) onQuarantine(ctx workflow.Context) (SegmentResult, error) {
	r.command, r.failure = quarantine, nil
	err := workflow.Await(ctx, func() bool {
		return r.state == Quarantined || r.state == Done || r.failure != nil
	})
	if err != nil {
		return SegmentResult{}, err
	}
	return r.result, r.failure
}
