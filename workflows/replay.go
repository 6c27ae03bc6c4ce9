package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/tidemark-cdc/tidemark/activities"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// ReplayName is the type of the workflow Replay. Recorded histories carry it.
const ReplayName = "Replay"

// ReplayID is the ID of the workflow that replays a quarantined segment.
func ReplayID(ref segment.Ref) string { return ref.WorkflowID() + "/replay" }

// ReplayInput starts a Replay.
type ReplayInput struct {
	Version int `json:"version"`
	// Ref is the segment's, as its object in quarantine has it.
	Ref    segment.Ref `json:"ref"`
	Limits Limits      `json:"limits,omitzero"`
}

// Replay decodes a quarantined segment again, from its object in quarantine, and
// has its rows take that one's place in the lake. Unlike a Segment it fails when
// no retry can help: nothing waits for it, the raw messages stay where they are,
// and it is started again under the same ID.
func Replay(ctx workflow.Context, in ReplayInput) (SegmentResult, error) {
	if in.Version > Version {
		// As in Segment.
		panic(fmt.Sprintf("replay input has version %d, this worker understands up to %d: upgrade the workers of task queue %s",
			in.Version, Version, workflow.GetInfo(ctx).TaskQueueName))
	}
	options := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: in.Limits.startToClose(),
		HeartbeatTimeout:    in.Limits.heartbeat(),
		RetryPolicy:         retryPolicy(),
		Summary:             fmt.Sprintf("decode %s again", counted(in.Ref.Rows, "row")),
	})
	var a *activities.Activities
	var out activities.UploadResult
	err := workflow.ExecuteActivity(options, a.Replay, activities.ReplayInput{Version: activities.Version, Ref: in.Ref}).Get(ctx, &out)
	if err != nil && ctx.Err() != nil {
		return SegmentResult{}, ctx.Err()
	}
	state, details := Done, "In the lake, and no longer in quarantine:\n"
	if err != nil {
		state, details = Quarantined, "The raw messages stay in quarantine.\n\nWhy: "+text(err)
	}
	for _, object := range out.Objects {
		details += fmt.Sprintf("\n- `%s`: %s, %s", object.Key, counted(object.Rows, "row"), size(object.Bytes))
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, StateAttribute.ValueSet(string(state))); err != nil {
		return SegmentResult{}, fmt.Errorf("set state of the replay of segment %s to %s: %w", in.Ref.First, state, err)
	}
	workflow.SetCurrentDetails(ctx, details)
	if err != nil {
		return SegmentResult{}, err
	}
	return SegmentResult{Version: Version, Ref: in.Ref, Objects: out.Objects, Existed: out.Existed}, nil
}
