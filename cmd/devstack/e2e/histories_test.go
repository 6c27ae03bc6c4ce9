package e2e

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/tidemark-cdc/tidemark/activities"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/operator"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/internal/tracker"
	"github.com/tidemark-cdc/tidemark/internal/tracker/trackertest"
	"github.com/tidemark-cdc/tidemark/workflows"
)

// record writes the histories that TestHistoriesOfARealServerReplay makes to the
// testdata of package workflows, whose tests replay them from then on:
//
//	go test ./e2e -run TestHistoriesOfARealServerReplay -record
//
// A file that is there stays as it is, for as long as a segment that was started
// by the release that recorded it may be open. A change of the workflow that
// makes another history adds a scene under a new name.
var record = flag.Bool("record", false, "write new histories to ../../workflows/testdata")

// played answers the attempts of one workflow's activities in order.
type played func(ctx context.Context, in activities.UploadInput) (activities.UploadResult, error)

// cast has the answers of each workflow, by its ID, and counts the attempts that
// have begun.
type cast struct {
	mu    sync.Mutex
	left  map[string][]played
	begun map[string]int
}

func (c *cast) play(ctx context.Context, in activities.UploadInput) (activities.UploadResult, error) {
	id := in.Ref.WorkflowID()
	c.mu.Lock()
	if len(c.left[id]) == 0 {
		c.mu.Unlock()
		return activities.UploadResult{}, temporal.NewNonRetryableApplicationError("the script has ended", "Script", nil)
	}
	next := c.left[id][0]
	c.left[id] = c.left[id][1:]
	c.begun[id]++
	c.mu.Unlock()
	return next(ctx, in)
}

// playAgain answers for a replay, from the same script.
func (c *cast) playAgain(ctx context.Context, in activities.ReplayInput) (activities.UploadResult, error) {
	return c.play(ctx, activities.UploadInput{Version: in.Version, Ref: in.Ref})
}

func stores(_ context.Context, in activities.UploadInput) (activities.UploadResult, error) {
	return activities.UploadResult{Version: activities.Version, Existed: in.Again, Objects: []activities.Object{{Key: lake.Key(in.Ref), Rows: in.Ref.Rows, Bytes: 1000}}}, nil
}

func putsAside(_ context.Context, in activities.UploadInput) (activities.UploadResult, error) {
	return activities.UploadResult{Version: activities.Version, Quarantined: true, Objects: []activities.Object{{Key: lake.QuarantineKey(in.Ref), Rows: in.Ref.Rows, Bytes: 1000}}}, nil
}

func waits(ctx context.Context, _ activities.UploadInput) (activities.UploadResult, error) {
	<-ctx.Done()
	return activities.UploadResult{}, temporal.NewCanceledError()
}

func failsWith(class activities.Class) played {
	return func(context.Context, activities.UploadInput) (activities.UploadResult, error) {
		return activities.UploadResult{}, temporal.NewApplicationErrorWithOptions("as the script says", string(class),
			temporal.ApplicationErrorOptions{NonRetryable: class.Permanent()})
	}
}

// scenes are the recorded histories: what the activities answer, and what an
// operator or a streamer does meanwhile.
func scenes() []scene {
	malformed := failsWith(activities.MalformedMessage)
	return []scene{
		{name: "stored", activities: []played{stores}},
		{name: "retried", activities: []played{failsWith(activities.StoreUnavailable), failsWith(activities.RowsNotYet), stores}},
		{name: "moved", activities: []played{waits, stores}, act: func(s *staged) { s.begun(1); s.redirect() }},
		{name: "moved-twice-at-once", activities: []played{waits, stores, stores, stores}, act: func(s *staged) { s.begun(1); s.redirect(); s.redirect() }},
		{name: "waiting", activities: []played{malformed}, open: true, act: func(s *staged) { s.waiting() }},
		{name: "uploading", activities: []played{waits}, open: true},
		{name: "retried-by-hand", activities: []played{malformed, stores}, act: func(s *staged) { s.waiting(); s.update(workflows.RetryUpdate) }},
		{name: "retried-by-hand-while-uploading", activities: []played{waits, stores}, act: func(s *staged) { s.begun(1); s.update(workflows.RetryUpdate) }},
		{name: "quarantined", activities: []played{malformed, putsAside}, act: func(s *staged) { s.waiting(); s.update(workflows.QuarantineUpdate) }},
		{name: "quarantine-moved", activities: []played{malformed, waits, putsAside}, act: func(s *staged) {
			s.waiting()
			s.updateAsync(workflows.QuarantineUpdate)
			s.begun(2)
			s.redirect()
		}},
		{name: "quarantine-failed", activities: []played{malformed, failsWith(activities.LakeConflict), stores}, act: func(s *staged) {
			s.waiting()
			s.update(workflows.QuarantineUpdate)
			s.update(workflows.RetryUpdate)
		}},
		{name: "canceled", activities: []played{waits}, act: func(s *staged) { s.begun(1); s.cancel() }},
		{name: "reset", activities: []played{stores, stores}, act: func(s *staged) { s.await(); s.reset() }},
	}
}

// replayScenes are those of the workflow Replay.
func replayScenes() []scene {
	return []scene{
		{name: "replayed", activities: []played{stores}},
		{name: "replay-retried", activities: []played{failsWith(activities.StoreUnavailable), stores}},
		{name: "replay-failed", activities: []played{failsWith(activities.MalformedMessage)}},
	}
}

type scene struct {
	name       string
	activities []played
	act        func(*staged)
	// open says that the workflow is still running when it is recorded.
	open bool
}

// staged is a scene being played.
type staged struct {
	*testing.T
	ctx  context.Context
	c    client.Client
	tr   *tracker.Tracker
	rec  segment.Record
	n    int
	cast *cast
	// namespace is the harness's.
	namespace string
}

func (s *staged) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *staged) id() string { return s.rec.Ref.WorkflowID() }

func (s *staged) redirect() {
	s.n++
	s.must(s.tr.Redirect(s.ctx, s.rec, segment.Location{Instance: fmt.Sprint("next-", s.n), Address: "127.0.0.1:4002"}))
}

// eventually waits until the history has what holds asks for.
func (s *staged) eventually(what string, holds func([]*historypb.HistoryEvent) bool) {
	s.Helper()
	s.until(what, func() bool { return holds(history(s.T, s.ctx, s.c, s.id())) })
}

// begun waits until so many attempts have begun. Before that, whatever makes the
// workflow give up an attempt may come before it has taken its part of the script.
func (s *staged) begun(attempts int) {
	s.Helper()
	s.until(fmt.Sprintf("%d attempts have begun", attempts), func() bool {
		s.cast.mu.Lock()
		defer s.cast.mu.Unlock()
		return s.cast.begun[s.id()] >= attempts
	})
}

func (s *staged) until(what string, holds func() bool) {
	s.Helper()
	for !holds() {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-s.ctx.Done():
			s.Fatalf("waiting until %s: %v", what, context.Cause(s.ctx))
		}
	}
}

func has(event enumspb.EventType) func([]*historypb.HistoryEvent) bool {
	return func(events []*historypb.HistoryEvent) bool {
		for _, e := range events {
			if e.GetEventType() == event {
				return true
			}
		}
		return false
	}
}

func (s *staged) scheduled() {
	s.eventually("an activity is scheduled", has(enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED))
}

func (s *staged) waiting() {
	s.eventually("the segment waits", has(enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES))
}

func (s *staged) updateAsync(name string) client.WorkflowUpdateHandle {
	handle, err := s.c.UpdateWorkflow(s.ctx, client.UpdateWorkflowOptions{WorkflowID: s.id(), UpdateName: name, WaitForStage: client.WorkflowUpdateStageAccepted})
	s.must(err)
	return handle
}

// update waits for the end of an update, whether it succeeds or not.
func (s *staged) update(name string) {
	err := s.updateAsync(name).Get(s.ctx, nil)
	if s.ctx.Err() != nil {
		s.Fatal(err)
	}
}

func (s *staged) cancel() {
	s.must(s.c.CancelWorkflow(s.ctx, s.id(), ""))
}

func (s *staged) await() {
	_, err := s.tr.Await(s.ctx, s.rec)
	s.must(err)
}

func (s *staged) reset() { s.must(trackertest.Reset(s.ctx, s.c, s.namespace, s.id())) }

func history(t *testing.T, ctx context.Context, c client.Client, id string) []*historypb.HistoryEvent {
	t.Helper()
	var events []*historypb.HistoryEvent
	for it := c.GetWorkflowHistory(ctx, id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); it.HasNext(); {
		e, err := it.Next()
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

func TestHistoriesOfARealServerReplay(t *testing.T) {
	h := temporalOnly(t)
	c := dialTemporal(t, h)
	tr := tracker.New(c, tracker.Config{
		TaskQueue: "histories", Namespace: h.Stack.Temporal.Namespace(), Eager: true, Logger: slog.New(slog.DiscardHandler),
		Heartbeat: time.Hour, // the played attempts send none
	})
	if _, err := tr.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	actors := &cast{left: make(map[string][]played), begun: make(map[string]int)}
	startWorker(t, c, "histories", actors.play, actors.play, actors.playAgain)
	for _, scene := range scenes() {
		t.Run(scene.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), harness.Bound)
			defer cancel()
			ref := trackertest.Ref(scene.name, 0, 4)
			actors.mu.Lock()
			actors.left[ref.WorkflowID()] = scene.activities
			actors.mu.Unlock()
			rec, err := tr.Start(ctx, ref, segment.Location{Instance: "first", Address: "127.0.0.1:4001"})
			if err != nil {
				t.Fatal(err)
			}
			s := &staged{T: t, ctx: ctx, c: c, tr: tr, rec: rec, cast: actors, namespace: h.Stack.Temporal.Namespace()}
			if scene.act != nil {
				scene.act(s)
			}
			if scene.open {
				s.scheduled()
			} else {
				s.await()
			}
			replay(t, scene.name, &historypb.History{Events: history(t, ctx, c, ref.WorkflowID())})
		})
	}
	o := operator.New(c, operator.Config{Pipeline: "histories", Namespace: h.Stack.Temporal.Namespace(), TaskQueue: "histories"})
	for _, scene := range replayScenes() {
		t.Run(scene.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), harness.Bound)
			defer cancel()
			ref := trackertest.Ref(scene.name, 0, 4)
			actors.mu.Lock()
			actors.left[ref.WorkflowID()] = scene.activities
			actors.mu.Unlock()
			_, err := o.Replay(ctx, ref, nil)
			if failed := err != nil; failed != (scene.name == "replay-failed") {
				t.Errorf("it ended with %v", err)
			}
			replay(t, scene.name, &historypb.History{Events: history(t, ctx, c, workflows.ReplayID(ref))})
		})
	}
}

func replay(t *testing.T, name string, events *historypb.History) {
	t.Helper()
	replayer := sdkworker.NewWorkflowReplayer()
	replayer.RegisterWorkflowWithOptions(workflows.Segment, workflow.RegisterOptions{Name: workflows.SegmentName})
	replayer.RegisterWorkflowWithOptions(workflows.Replay, workflow.RegisterOptions{Name: workflows.ReplayName})
	if err := replayer.ReplayWorkflowHistory(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), events); err != nil {
		t.Errorf("replay: %v", err)
	}
	if !*record {
		return
	}
	text, err := temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(events)
	if err != nil {
		t.Fatal(err)
	}
	// The sticky task queue is named after the machine.
	if host, err := os.Hostname(); err == nil {
		text = bytes.ReplaceAll(text, []byte(`"`+host+":"), []byte(`"worker:`))
	}
	path := filepath.Join("..", "..", "..", "workflows", "testdata", name+".json")
	if _, err := os.Stat(path); err == nil {
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
