package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/tidemark-cdc/tidemark/activities"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/internal/tracker"
	"github.com/tidemark-cdc/tidemark/internal/tracker/trackertest"
	"github.com/tidemark-cdc/tidemark/worker"
	"github.com/tidemark-cdc/tidemark/workflows"
)

// dialTemporal connects to the harness's Temporal.
func dialTemporal(t *testing.T, h *harness.Harness) client.Client {
	t.Helper()
	c, err := client.Dial(client.Options{
		HostPort: h.Stack.Temporal.Address(), Namespace: h.Stack.Temporal.Namespace(), Identity: "e2e",
		Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// stage plays the activities: an upload goes on until the test lets its run
// finish. An attempt that the workflow has given up hears nothing of that, since
// it does not heartbeat: it stays until its run or the worker ends.
type stage struct {
	*testing.T
	c client.Client

	mu      sync.Mutex
	done    map[string]chan struct{} // by run, closed when it may finish
	sources map[string][]segment.Location
}

func newStage(t *testing.T, c client.Client) *stage {
	return &stage{T: t, c: c, done: make(map[string]chan struct{}), sources: make(map[string][]segment.Location)}
}

func (s *stage) upload(ctx context.Context, in activities.UploadInput) (activities.UploadResult, error) {
	id := in.Ref.WorkflowID()
	s.mu.Lock()
	s.sources[id] = append(s.sources[id], in.Source)
	s.mu.Unlock()
	select {
	case <-s.gate(activity.GetInfo(ctx).WorkflowExecution.RunID):
		return activities.UploadResult{Version: activities.Version, Objects: []activities.Object{{Key: lake.Key(in.Ref), Rows: in.Ref.Rows, Bytes: 1000}}}, nil
	case <-ctx.Done():
		return activities.UploadResult{}, context.Cause(ctx)
	}
}

func (s *stage) gate(run string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done[run] == nil {
		s.done[run] = make(chan struct{})
	}
	return s.done[run]
}

// finish lets the uploads of a workflow's open run succeed. A run that comes
// after it has to be let go in its turn.
func (s *stage) finish(id string) {
	s.Helper()
	described, err := s.c.DescribeWorkflowExecution(s.Context(), id, "")
	if err != nil {
		s.Fatal(err)
	}
	close(s.gate(described.GetWorkflowExecutionInfo().GetExecution().GetRunId()))
}

// asked gives where the attempts of a workflow's uploads were told that the rows
// are. Which of them is the first to hear of a move is not said: the signal may
// be there before the first attempt begins.
func (s *stage) asked(id string) []segment.Location {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sources[id])
}

// startWorker runs the real workflow with played activities until the test ends.
func startWorker(t *testing.T, c client.Client, queue string, upload, quarantine, replay any) {
	t.Helper()
	w := sdkworker.New(c, queue, sdkworker.Options{Identity: "e2e"})
	w.RegisterWorkflowWithOptions(workflows.Segment, workflow.RegisterOptions{Name: workflows.SegmentName})
	w.RegisterActivityWithOptions(upload, activity.RegisterOptions{Name: activities.UploadName})
	w.RegisterActivityWithOptions(quarantine, activity.RegisterOptions{Name: activities.QuarantineName})
	w.RegisterWorkflowWithOptions(workflows.Replay, workflow.RegisterOptions{Name: workflows.ReplayName})
	w.RegisterActivityWithOptions(replay, activity.RegisterOptions{Name: activities.ReplayName})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
}

func temporalOnly(t *testing.T) *harness.Harness {
	t.Helper()
	return harness.New(t, harness.Options{Postgres: 15, NoSetup: true, TemporalMemory: true})
}

func TestTheTrackersContractHoldsOverTemporal(t *testing.T) {
	h := temporalOnly(t)
	c := dialTemporal(t, h)
	s := newStage(t, c)
	startWorker(t, c, "contract", s.upload, s.upload, s.upload)
	trackertest.Run(t, trackertest.Env{
		Client: c, Namespace: h.Stack.Temporal.Namespace(), TaskQueue: "contract",
		Finish: s.finish, Sources: s.asked,
	})
}

// heldSource serves rows of its own once it is let go.
type heldSource struct {
	rows  []change.Change
	asked chan struct{} // receives for each fetch
	hold  chan struct{}
}

func newHeldSource() *heldSource {
	rows := make([]change.Change, 3)
	for i := range rows {
		rows[i] = change.Change{
			Position: change.Position{Timeline: 1, LSN: 0x16B3748, Ordinal: uint64(i)}, CommitTime: change.Time(20000 * 24 * 3600 * 1e6),
			Raw: []byte("M\x00\x00\x00\x00\x00\x00\x00\x00\x00p\x00\x00\x00\x00\x01x"), XID: 7, Operation: change.Message,
		}
	}
	return &heldSource{rows: rows, asked: make(chan struct{}, 100), hold: make(chan struct{})}
}

func (s *heldSource) ref(pipeline, lakeURL string) segment.Ref {
	ref := trackertest.Ref(pipeline, 0, uint64(len(s.rows)-1))
	hasher := segment.NewHasher()
	for i := range s.rows {
		hasher.Add(&s.rows[i])
	}
	ref.Rows, ref.Bytes, ref.Digest, ref.Lake = hasher.Rows(), hasher.Bytes(), hasher.Sum(), lakeURL
	return ref
}

func (s *heldSource) Fetch(ctx context.Context, _ segment.Ticket) (segment.Reader, error) {
	s.asked <- struct{}{}
	select {
	case <-s.hold:
		return &onceReader{rows: s.rows}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

type onceReader struct{ rows []change.Change }

func (r *onceReader) Next() ([]change.Change, error) {
	if r.rows == nil {
		return nil, io.EOF
	}
	rows := r.rows
	r.rows = nil
	return rows, nil
}

func (r *onceReader) Close() error { return nil }

// startRun runs a worker with real activities; stop tells it to stop, and done
// receives what Run returned.
func startRun(t *testing.T, c client.Client, queue string, source segment.Source, l *lake.Lake, drain time.Duration) (stop func(), done chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done = make(chan error, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		done <- worker.Run(ctx, worker.Config{TaskQueue: queue, Drain: drain, Identity: "e2e"}, worker.Deps{
			Client: c, Logger: slog.New(slog.DiscardHandler),
			Activities: &activities.Activities{
				Source:         func(segment.Location) (segment.Source, error) { return source, nil },
				Lake:           l,
				Logger:         slog.New(slog.DiscardHandler),
				HeartbeatEvery: 100 * time.Millisecond,
			},
		})
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return cancel, done
}

func TestAWorkerFinishesItsUploadsBeforeItStops(t *testing.T) {
	h := temporalOnly(t)
	c := dialTemporal(t, h)
	ctx, cancel := context.WithTimeout(t.Context(), harness.Bound)
	defer cancel()
	tr := tracker.New(c, tracker.Config{TaskQueue: "drain", Namespace: h.Stack.Temporal.Namespace(), Eager: true, Logger: slog.New(slog.DiscardHandler)})
	if _, err := tr.Setup(ctx); err != nil {
		t.Fatal(err)
	}
	l := lake.New("s3://bucket/drain", lake.NewMemory())
	at := segment.Location{Instance: "a", Address: "127.0.0.1:4001"}

	// The upload ends while the worker drains.
	source := newHeldSource()
	stop, done := startRun(t, c, "drain", source, l, time.Minute)
	ref := source.ref("drained", l.URL())
	rec, err := tr.Start(ctx, ref, at)
	if err != nil {
		t.Fatal(err)
	}
	receive(t, ctx, source.asked)
	stop()
	select {
	case err := <-done:
		t.Fatalf("the worker has left a running upload: %v", err)
	case <-time.After(500 * time.Millisecond):
	}
	close(source.hold)
	if err := receive(t, ctx, done); err != nil {
		t.Fatal(err)
	}
	if object, ok, err := l.FindSegment(ctx, ref); err != nil || !ok {
		t.Fatalf("the lake has %+v, %t, %v", object, ok, err)
	}

	// The workflow's last task is for whoever comes next; and an upload that
	// does not end within the drain is handed back, and goes on elsewhere long
	// before its heartbeat is missed. The worker's connection ends with it, as
	// its process would.
	slow, l := newHeldSource(), lake.New("s3://bucket/cut", lake.NewMemory())
	own := dialTemporal(t, h)
	stop, done = startRun(t, own, "drain", slow, l, 300*time.Millisecond)
	if rec, err = tr.Await(ctx, rec); err != nil || rec.State != segment.Completed {
		t.Fatalf("record is %+v, %v", rec, err)
	}
	second := slow.ref("cut-off", l.URL())
	rec, err = tr.Start(ctx, second, at)
	if err != nil {
		t.Fatal(err)
	}
	receive(t, ctx, slow.asked)
	stop()
	if err := receive(t, ctx, done); err != nil {
		t.Fatal(err)
	}
	own.Close()
	begin := time.Now()
	close(slow.hold)
	startRun(t, c, "drain", slow, l, time.Minute)
	if rec, err = tr.Await(ctx, rec); err != nil || rec.State != segment.Completed {
		t.Fatalf("record is %+v, %v", rec, err)
	}
	if took := time.Since(begin); took > workflows.DefaultHeartbeat/2 {
		t.Errorf("the upload went on elsewhere after %s", took)
	}
	wantStopped(t, history(t, ctx, c, second.WorkflowID()))
}

// wantStopped fails the test unless the attempt before the one that succeeded
// was reported as stopped.
func wantStopped(t *testing.T, events []*historypb.HistoryEvent) {
	t.Helper()
	for _, e := range events {
		if started := e.GetActivityTaskStartedEventAttributes(); started != nil {
			class := started.GetLastFailure().GetApplicationFailureInfo().GetType()
			if started.GetAttempt() != 2 || class != string(activities.AttemptStopped) {
				t.Errorf("attempt %d followed a failure of class %q", started.GetAttempt(), class)
			}
		}
	}
}

func TestAnOperatorPausesAndResetsAnUpload(t *testing.T) {
	h := temporalOnly(t)
	c := dialTemporal(t, h)
	ctx, cancel := context.WithTimeout(t.Context(), harness.Bound)
	defer cancel()
	namespace := h.Stack.Temporal.Namespace()
	tr := tracker.New(c, tracker.Config{TaskQueue: "pause", Namespace: namespace, Logger: slog.New(slog.DiscardHandler)})
	if _, err := tr.Setup(ctx); err != nil {
		t.Fatal(err)
	}
	source, l := newHeldSource(), lake.New("s3://bucket/pause", lake.NewMemory())
	startRun(t, c, "pause", source, l, time.Minute)
	ref := source.ref("paused", l.URL())
	rec, err := tr.Start(ctx, ref, segment.Location{Instance: "a", Address: "127.0.0.1:4001"})
	if err != nil {
		t.Fatal(err)
	}
	receive(t, ctx, source.asked)
	execution := &commonpb.WorkflowExecution{WorkflowId: ref.WorkflowID()}
	_, err = c.WorkflowService().ResetActivity(ctx, &workflowservice.ResetActivityRequest{
		Namespace: namespace, Execution: execution, Activity: &workflowservice.ResetActivityRequest_Type{Type: activities.UploadName},
	})
	if err != nil {
		t.Fatal(err)
	}
	receive(t, ctx, source.asked)

	_, err = c.WorkflowService().PauseActivity(ctx, &workflowservice.PauseActivityRequest{
		Namespace: namespace, Execution: execution, Activity: &workflowservice.PauseActivityRequest_Type{Type: activities.UploadName},
	})
	if err != nil {
		t.Fatal(err)
	}
	h.Eventually(harness.Bound, func() string {
		described, err := c.DescribeWorkflowExecution(ctx, ref.WorkflowID(), "")
		if err != nil {
			return err.Error()
		}
		for _, pending := range described.GetPendingActivities() {
			if pending.GetState() == enumspb.PENDING_ACTIVITY_STATE_PAUSED {
				return ""
			}
		}
		return fmt.Sprint("the attempt goes on: ", described.GetPendingActivities())
	})
	close(source.hold)
	_, err = c.WorkflowService().UnpauseActivity(ctx, &workflowservice.UnpauseActivityRequest{
		Namespace: namespace, Execution: execution, Activity: &workflowservice.UnpauseActivityRequest_Type{Type: activities.UploadName},
	})
	if err != nil {
		t.Fatal(err)
	}
	if rec, err = tr.Await(ctx, rec); err != nil || rec.State != segment.Completed {
		t.Fatalf("record is %+v, %v", rec, err)
	}
}

func receive[T any](t *testing.T, ctx context.Context, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-ctx.Done():
		t.Fatal(errors.Join(errors.New("nothing came"), context.Cause(ctx)))
	}
	return v
}
