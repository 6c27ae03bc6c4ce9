package tracker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/workflows"
)

// Config sets up a Tracker.
type Config struct {
	// TaskQueue is where the pipeline's workers listen. Required; see
	// workflows.TaskQueue for the default of a pipeline.
	TaskQueue string
	// Namespace is the one that the client is bound to; Setup and Check ask
	// about it. Required.
	Namespace string
	// Eager asks for the first workflow task to be handed to a worker of this
	// process, which must have been made with the same client.
	Eager bool
	// StartToClose and Heartbeat bound one attempt of an upload, in whole
	// seconds. Zero is workflows' default, with more time for a large segment.
	StartToClose, Heartbeat time.Duration
	// CallTimeout bounds one call to Temporal, the SDK's own retries included,
	// and so the time until an outage is noticed. Zero is 10 s.
	CallTimeout time.Duration
	// MinBackoff and MaxBackoff bound the pause between two tries. Zero is
	// 100 ms and 10 s.
	MinBackoff, MaxBackoff time.Duration
	// AttributePatience is how long a start is retried while Temporal says that
	// it does not know the search attributes: for a moment after they have been
	// registered that is so on some of its hosts. Zero is 15 s.
	AttributePatience time.Duration
	// OnOutage, if set, is called when Temporal becomes unreachable, with the
	// time of the first failure, and when it answers again, with the zero time.
	// It must not block.
	OnOutage func(since time.Time, err error)
	// DataConverter is the client's; nil is the SDK's default.
	DataConverter converter.DataConverter
	// Logger is required.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.CallTimeout, 10 * time.Second},
		{&c.MinBackoff, 100 * time.Millisecond},
		{&c.MaxBackoff, 10 * time.Second},
		{&c.AttributePatience, 15 * time.Second},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	if c.DataConverter == nil {
		c.DataConverter = converter.GetDefaultDataConverter()
	}
	return c
}

// ErrForeign says that a workflow under a segment's ID was not started by a
// streamer, or by one of a release that this one does not understand.
var ErrForeign = errors.New("a workflow that is no record of a segment holds this ID")

// Tracker records segments in Temporal. Safe for concurrent use.
type Tracker struct {
	client client.Client
	cfg    Config
	outage outage
}

// New returns a Tracker over c, which stays the caller's. It does no I/O.
func New(c client.Client, cfg Config) *Tracker {
	cfg = cfg.withDefaults()
	return &Tracker{client: c, cfg: cfg, outage: outage{log: cfg.Logger, notify: cfg.OnOutage}}
}

// Start records ref and has it uploaded from at, unless the ID has been used:
// then it returns the existing record, with Started false. A start whose answer
// was lost comes out as an existing record that equals ref.
//
// The state None means that the workflow existed and vanished between two calls:
// nothing is started, and the caller looks again from the beginning.
//
// A record that was given up binds nobody: ref is started in its place, under
// the same ID.
func (t *Tracker) Start(ctx context.Context, ref segment.Ref, at segment.Location) (segment.Record, error) {
	rec, err := t.start(ctx, ref, at, false)
	if err == nil && rec.GivenUp {
		return t.start(ctx, ref, at, true)
	}
	return rec, err
}

// Restart starts a broken segment again under its own ID. The segment is
// described first: a run that is open or completed by now is returned instead,
// and so is a broken one whose boundary is not ref's, since a boundary is only
// replaced after it has been adopted. None means what it means for Start.
func (t *Tracker) Restart(ctx context.Context, ref segment.Ref, at segment.Location) (segment.Record, error) {
	rec, err := t.Describe(ctx, ref.Pipeline, ref.First)
	if err != nil {
		return segment.Record{}, err
	}
	if rec.State != segment.Broken || !sameSegment(rec.Ref, ref) {
		return rec, nil
	}
	return t.start(ctx, ref, at, true)
}

// slowest is the rate, in bytes a second, below which an upload counts as stuck.
// The lake gives up on single requests at the same rate.
const slowest = 256 << 10

// startToClose bounds one attempt: the configured time, or the default one and
// what the segment's bytes may need besides.
func (t *Tracker) startToClose(ref segment.Ref) time.Duration {
	if t.cfg.StartToClose > 0 {
		return t.cfg.StartToClose
	}
	return workflows.DefaultStartToClose + time.Duration(ref.Bytes/slowest)*time.Second
}

func sameSegment(a, b segment.Ref) bool {
	return a.First == b.First && a.Last == b.Last && a.Digest == b.Digest && a.Lake == b.Lake && a.Follows == b.Follows
}

func (t *Tracker) start(ctx context.Context, ref segment.Ref, at segment.Location, again bool) (segment.Record, error) {
	if err := ref.Validate(); err != nil {
		return segment.Record{}, err
	}
	reuse := enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
	if again {
		reuse = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY
	}
	options := client.StartWorkflowOptions{
		ID:                       ref.WorkflowID(),
		TaskQueue:                t.cfg.TaskQueue,
		WorkflowIDReusePolicy:    reuse,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		// Otherwise the SDK hands out the existing run as if it were ours.
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		Memo:                                     map[string]any{MemoRef: ref},
		TypedSearchAttributes:                    workflows.Attributes(ref),
		EnableEagerStart:                         t.cfg.Eager,
		StaticSummary:                            workflows.Summary(ref),
		StaticDetails:                            workflows.Details(ref),
	}
	input := workflows.SegmentInput{
		Version: workflows.Version, Ref: ref, Source: at, Again: again,
		Limits: workflows.Limits{
			StartToCloseSeconds: int64(t.startToClose(ref) / time.Second),
			HeartbeatSeconds:    int64(t.cfg.Heartbeat / time.Second),
		},
	}
	action := fmt.Sprintf("start workflow %s", options.ID)
	var run client.WorkflowRun
	err := t.call(ctx, action, func(ctx context.Context) (err error) {
		run, err = t.client.ExecuteWorkflow(ctx, options, workflows.SegmentName, input)
		return err
	})
	if _, exists := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); exists {
		return t.Describe(ctx, ref.Pipeline, ref.First)
	}
	if err != nil {
		return segment.Record{}, err
	}
	return segment.Record{State: segment.Running, RunID: run.GetRunID(), Ref: ref, Started: true}, nil
}

// Redirect tells an open segment where its rows are now. A run that has closed
// meanwhile needs no rows and is no error.
func (t *Tracker) Redirect(ctx context.Context, rec segment.Record, at segment.Location) error {
	id := rec.Ref.WorkflowID()
	err := t.call(ctx, fmt.Sprintf("signal workflow %s", id), func(ctx context.Context) error {
		// Whichever run is open now: a reset may have replaced the recorded one.
		return t.client.SignalWorkflow(ctx, id, "", workflows.SourceSignal, at)
	})
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) {
		return nil
	}
	return err
}
