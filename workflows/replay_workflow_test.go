package workflows_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/tidemark-cdc/tidemark/activities"
	"github.com/tidemark-cdc/tidemark/workflows"
)

// replayed runs Replay over an activity that answers with errs in order, and
// then succeeds.
func replayed(t *testing.T, errs ...activities.Class) (result workflows.SegmentResult, attempts int64, err error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	var n atomic.Int64
	env.RegisterActivityWithOptions(func(ctx context.Context, in activities.ReplayInput) (activities.UploadResult, error) {
		i := int(n.Add(1)) - 1
		if in.Ref.First != testRef().First || in.Version != activities.Version {
			t.Errorf("asked for %+v", in)
		}
		if i < len(errs) {
			return failWith(errs[i], "as the script says")(ctx, activities.UploadInput{})
		}
		return stored, nil
	}, activity.RegisterOptions{Name: activities.ReplayName})
	env.RegisterWorkflowWithOptions(workflows.Replay, workflow.RegisterOptions{Name: workflows.ReplayName})
	if err := env.SetTypedSearchAttributesOnStart(workflows.Attributes(testRef())); err != nil {
		t.Fatal(err)
	}
	env.ExecuteWorkflow(workflows.ReplayName, workflows.ReplayInput{Version: workflows.Version, Ref: testRef()})
	if err = env.GetWorkflowError(); err == nil {
		err = env.GetWorkflowResult(&result)
	}
	return result, n.Load(), err
}

func TestAReplayIsTriedUntilItSucceeds(t *testing.T) {
	result, attempts, err := replayed(t, activities.StoreUnavailable, activities.StoreDenied)
	if err != nil || attempts != 3 || len(result.Objects) != 1 || result.Quarantined || result.Ref.First != testRef().First {
		t.Errorf("%+v after %d attempts, %v", result, attempts, err)
	}
}

// Nothing holds the ack, so nothing waits for a person.
func TestAReplayThatCannotSucceedFails(t *testing.T) {
	_, attempts, err := replayed(t, activities.MalformedMessage)
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	if attempts != 1 || !ok || app.Type() != string(activities.MalformedMessage) || !strings.Contains(err.Error(), "as the script says") {
		t.Errorf("%v after %d attempts", err, attempts)
	}
}
