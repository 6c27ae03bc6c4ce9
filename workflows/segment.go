package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/tidemark-cdc/tidemark/activities"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// Segment brings one segment into the lake. It completes when the object is
// there, or when an operator has had the raw messages put into quarantine; it
// ends otherwise only when someone outside cancels or terminates it.
func Segment(ctx workflow.Context, in SegmentInput) (SegmentResult, error) {
	if in.Version > Version {
		// A panic fails the workflow task and not the workflow: Temporal offers
		// the task again until a worker of a newer release takes it. Returning an
		// error would break the segment instead.
		panic(fmt.Sprintf("segment input has version %d, this worker understands up to %d: upgrade the workers of task queue %s",
			in.Version, Version, workflow.GetInfo(ctx).TaskQueueName))
	}
	info := workflow.GetInfo(ctx)
	r := &run{
		in:      in,
		source:  in.Source,
		sources: workflow.GetSignalChannelWithOptions(ctx, SourceSignal, workflow.SignalChannelOptions{Description: "The rows are now at another streamer."}),
		state:   Uploading,
		// After a reset the run has another ID than the one that it began with.
		scheduled: in.Again || info.OriginalRunID != "" && info.OriginalRunID != info.WorkflowExecution.RunID,
	}
	if err := r.handleUpdates(ctx); err != nil {
		return SegmentResult{}, err
	}
	return r.main(ctx)
}

// command is what an operator has asked for and main has not taken up yet.
type command int

const (
	none command = iota
	retry
	quarantine
)

// run is one execution of Segment. Only the workflow's own coroutines touch it,
// one at a time.
type run struct {
	in      SegmentInput
	source  segment.Location
	sources workflow.ReceiveChannel
	// state is the value of TidemarkState.
	state State
	// command is set by the update handlers and cleared by main alone.
	command command
	// quarantining says that raw messages are being put aside. Nothing may be
	// uploaded from then on: the rows would be in the lake twice.
	quarantining bool
	// scheduled says that an attempt was scheduled before, which may have stored
	// the object.
	scheduled bool
	// result and failure are the outcome of a quarantine, for its update.
	result  SegmentResult
	failure error
}

// main uploads until that succeeds; a permanent error makes it wait for a command.
func (r *run) main(ctx workflow.Context) (SegmentResult, error) {
	for {
		out, err := r.upload(ctx)
		for err != nil {
			if ctx.Err() != nil {
				return SegmentResult{}, ctx.Err()
			}
			if err := r.wait(ctx, err); err != nil {
				return SegmentResult{}, err
			}
			if r.command == retry {
				break
			}
			out, err = r.quarantine(ctx)
		}
		if err == nil {
			return r.finish(ctx, out)
		}
		if err := r.become(ctx, Uploading); err != nil {
			return SegmentResult{}, err
		}
	}
}

// wait shows why the segment cannot be uploaded and returns when there is a
// command.
func (r *run) wait(ctx workflow.Context, why error) error {
	if err := r.become(ctx, Waiting); err != nil {
		return err
	}
	workflow.SetCurrentDetails(ctx, r.waitingDetails(ctx, why))
	workflow.GetLogger(ctx).Error("segment waits for an operator",
		"pipeline", r.in.Ref.Pipeline, "first", r.in.Ref.First.String(), "error", text(why))
	return workflow.Await(ctx, func() bool { return r.command != none })
}

// upload runs the activity Upload to its end.
func (r *run) upload(ctx workflow.Context) (activities.UploadResult, error) {
	workflow.SetCurrentDetails(ctx, "")
	var a *activities.Activities
	return r.execute(ctx, a.Upload, fmt.Sprintf("upload %s", counted(r.in.Ref.Rows, "row")))
}

// quarantine runs the activity Quarantine to its end.
func (r *run) quarantine(ctx workflow.Context) (activities.UploadResult, error) {
	r.quarantining, r.failure = true, nil
	defer func() { r.quarantining = false }()
	workflow.SetCurrentDetails(ctx, "The raw messages are being put into quarantine, as an operator asked.")
	var a *activities.Activities
	out, err := r.execute(ctx, a.Quarantine, fmt.Sprintf("put %s into quarantine", counted(r.in.Ref.Rows, "row")))
	r.failure = err
	return out, err
}

// execute schedules an activity, and again whenever the rows have moved or an
// operator asks for a retry, until an attempt ends with a result or with an
// error that Temporal does not retry. It returns ctx's error when the workflow
// is canceled.
func (r *run) execute(ctx workflow.Context, activity any, summary string) (activities.UploadResult, error) {
	for {
		r.takeSource(ctx)
		r.command = none
		attempt, cancel := workflow.WithCancel(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: r.in.Limits.startToClose(),
			HeartbeatTimeout:    r.in.Limits.heartbeat(),
			RetryPolicy:         retryPolicy(),
			Summary:             summary,
		}))
		future := workflow.ExecuteActivity(attempt, activity, activities.UploadInput{
			Version: activities.Version, Ref: r.in.Ref, Source: r.source, Again: r.scheduled,
		})
		r.scheduled = true

		again := false
		for !again && !future.IsReady() {
			err := workflow.Await(ctx, func() bool {
				return future.IsReady() || r.sources.Len() > 0 || r.command != none
			})
			if err != nil {
				cancel()
				return activities.UploadResult{}, err
			}
			// A signal may name the source that is in use already.
			again = !future.IsReady() && (r.takeSource(ctx) || r.command != none)
		}
		if again {
			// Not waited for: its worker, or the streamer that it talks to, may
			// be gone. Should it store the object after all, the next attempt
			// finds that.
			cancel()
			continue
		}
		var out activities.UploadResult
		err := future.Get(ctx, &out)
		cancel()
		if err != nil && (r.takeSource(ctx) || r.command != none) {
			continue
		}
		return out, err
	}
}

// takeSource drains the signals and says whether the rows are elsewhere now.
func (r *run) takeSource(ctx workflow.Context) bool {
	before := r.source
	for {
		var at segment.Location
		if !r.sources.ReceiveAsync(&at) {
			return r.source != before
		}
		if at == (segment.Location{}) {
			workflow.GetLogger(ctx).Warn("signal source without a location: ignored", "first", r.in.Ref.First.String())
			continue
		}
		r.source = at
	}
}

// become moves TidemarkState.
func (r *run) become(ctx workflow.Context, state State) error {
	if r.state == state {
		return nil
	}
	r.state = state
	if err := workflow.UpsertTypedSearchAttributes(ctx, StateAttribute.ValueSet(string(state))); err != nil {
		return fmt.Errorf("set state of segment %s to %s: %w", r.in.Ref.First, state, err)
	}
	return nil
}

// finish records the outcome and lets the update that brought it about return.
func (r *run) finish(ctx workflow.Context, out activities.UploadResult) (SegmentResult, error) {
	r.result = SegmentResult{
		Version: Version, Ref: r.in.Ref,
		Objects: out.Objects, Existed: out.Existed, Quarantined: out.Quarantined,
	}
	state := Done
	if out.Quarantined {
		state = Quarantined
	}
	if err := r.become(ctx, state); err != nil {
		return SegmentResult{}, err
	}
	workflow.SetCurrentDetails(ctx, finishedDetails(r.result))
	if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil && !temporal.IsCanceledError(err) {
		return SegmentResult{}, err
	}
	return r.result, nil
}

// retryPolicy never gives up: a segment that is not uploaded holds the ack, and
// with it the WAL, until it is.
func retryPolicy() *temporal.RetryPolicy {
	return &temporal.RetryPolicy{
		InitialInterval:    initialInterval,
		BackoffCoefficient: 2,
		MaximumInterval:    maximumInterval,
	}
}
