package workflows_test

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/tidemark-cdc/tidemark/workflows"
)

// The histories in testdata were recorded from a real server, by the test
// TestHistoriesOfARealServerReplay in cmd/devstack/e2e: see there for how to
// record more.

func TestRecordedHistoriesReplay(t *testing.T) {
	histories, err := filepath.Glob(filepath.Join("testdata", "*.json"))
	if err != nil || len(histories) < 16 {
		t.Fatalf("found %d recorded histories, %v", len(histories), err)
	}
	for _, history := range histories {
		t.Run(strings.TrimSuffix(filepath.Base(history), ".json"), func(t *testing.T) {
			if err := replay(workflows.Segment, history); err != nil {
				t.Errorf("this release breaks segments that are open: %v", err)
			}
		})
	}
}

func TestAReplaySeesAChangeOfTheWorkflow(t *testing.T) {
	changed := func(ctx workflow.Context, in workflows.SegmentInput) (workflows.SegmentResult, error) {
		if err := workflow.UpsertTypedSearchAttributes(ctx, workflows.StateAttribute.ValueSet(string(workflows.Uploading))); err != nil {
			return workflows.SegmentResult{}, err
		}
		return workflows.Segment(ctx, in)
	}
	if err := replay(changed, filepath.Join("testdata", "stored.json")); err == nil {
		t.Error("one more command at the beginning, and the replay does not see it")
	}
}

func replay(segment any, history string) error {
	replayer := worker.NewWorkflowReplayer()
	replayer.RegisterWorkflowWithOptions(segment, workflow.RegisterOptions{Name: workflows.SegmentName})
	replayer.RegisterWorkflowWithOptions(workflows.Replay, workflow.RegisterOptions{Name: workflows.ReplayName})
	return replayer.ReplayWorkflowHistoryFromJSONFile(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), history)
}
