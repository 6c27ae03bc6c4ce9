package workflows_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/tidemark-cdc/tidemark/activities"
	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/workflows"
)

func testRef() segment.Ref {
	return segment.Ref{
		Pipeline: "orders", SystemID: "7300000000000000001", Lake: "s3://bucket/lake",
		First:   change.Position{Timeline: 1, LSN: 0x16B3748, Ordinal: 0},
		Last:    change.Position{Timeline: 1, LSN: 0x16B9000, Ordinal: 4},
		Follows: change.JustBefore(1, 0x16B3700),
		Day:     20000, Rows: 12345, Bytes: 3 << 20, Digest: 0xABCD,
		Tables: []string{"public.items", "public.orders"}, TableCount: 2,
	}
}

var here = segment.Location{Instance: "a", Address: "127.0.0.1:4001"}
var there = segment.Location{Instance: "b", Address: "127.0.0.1:4002"}

// attempt answers one attempt of an activity.
type attempt func(ctx context.Context, in activities.UploadInput) (activities.UploadResult, error)

// script answers the attempts of an activity in order, the last one repeatedly.
type script struct {
	mu       sync.Mutex
	attempts []attempt
	seen     []activities.UploadInput
}

func (s *script) run(ctx context.Context, in activities.UploadInput) (activities.UploadResult, error) {
	s.mu.Lock()
	next := s.attempts[min(len(s.seen), len(s.attempts)-1)]
	s.seen = append(s.seen, in)
	s.mu.Unlock()
	return next(ctx, in)
}

func (s *script) calls() []activities.UploadInput {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]activities.UploadInput(nil), s.seen...)
}

var stored = activities.UploadResult{Version: 1, Objects: []activities.Object{{Key: "2024/10/04/x.zstd.parquet", Rows: 12345, Bytes: 4096}}}

func succeed(context.Context, activities.UploadInput) (activities.UploadResult, error) {
	return stored, nil
}

func putAside(context.Context, activities.UploadInput) (activities.UploadResult, error) {
	return activities.UploadResult{Version: 1, Quarantined: true, Objects: []activities.Object{{Key: "_quarantine/2024/10/04/x.zstd.parquet", Rows: 12345, Bytes: 99}}}, nil
}

func failWith(class activities.Class, text string) attempt {
	return func(context.Context, activities.UploadInput) (activities.UploadResult, error) {
		return activities.UploadResult{}, temporal.NewApplicationErrorWithOptions(text, string(class),
			temporal.ApplicationErrorOptions{NonRetryable: class.Permanent()})
	}
}

// hang goes on until the test ends, as an upload does whose streamer is gone:
// nobody waits for it. While it runs, the environment's clock is the real one.
func hang(t *testing.T) attempt {
	over, end := context.WithCancel(context.Background())
	t.Cleanup(end)
	return func(ctx context.Context, _ activities.UploadInput) (activities.UploadResult, error) {
		select {
		case <-ctx.Done():
		case <-over.Done():
		}
		return activities.UploadResult{}, context.Canceled
	}
}

// hangUnlessAt is hang for an attempt whose rows are elsewhere, and next for the
// others: the environment starts attempts in any order.
func hangUnlessAt(t *testing.T, at segment.Location, next attempt) attempt {
	return unlessAt(at, hang(t), next)
}

// unlessAt answers with next when the rows are at that place, else with otherwise.
func unlessAt(at segment.Location, otherwise, next attempt) attempt {
	return func(ctx context.Context, in activities.UploadInput) (activities.UploadResult, error) {
		if in.Source == at {
			return next(ctx, in)
		}
		return otherwise(ctx, in)
	}
}

// never is for an activity that must not be asked for.
func never(t *testing.T) attempt {
	return func(context.Context, activities.UploadInput) (activities.UploadResult, error) {
		t.Error("the activity was asked for")
		return activities.UploadResult{}, nil
	}
}

// view is what the UI would show.
type view struct {
	State   string
	Details string
}

type env struct {
	*testsuite.TestWorkflowEnvironment
	upload, quarantine *script
}

// newEnv runs Segment as the workflow "observed", which answers the query "view".
func newEnv(t *testing.T, upload, quarantine []attempt) *env {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	e := &env{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), upload: &script{attempts: upload}, quarantine: &script{attempts: quarantine}}
	e.RegisterActivityWithOptions(e.upload.run, activity.RegisterOptions{Name: activities.UploadName})
	e.RegisterActivityWithOptions(e.quarantine.run, activity.RegisterOptions{Name: activities.QuarantineName})
	e.RegisterWorkflowWithOptions(observed, workflow.RegisterOptions{Name: "observed"})
	if err := e.SetTypedSearchAttributesOnStart(workflows.Attributes(testRef())); err != nil {
		t.Fatal(err)
	}
	e.SetTestTimeout(2 * time.Minute)
	e.SetWorkflowRunTimeout(365 * 24 * time.Hour)
	return e
}

func observed(ctx workflow.Context, in workflows.SegmentInput) (workflows.SegmentResult, error) {
	err := workflow.SetQueryHandler(ctx, "view", func() (view, error) {
		state, _ := workflow.GetTypedSearchAttributes(ctx).GetKeyword(workflows.StateAttribute)
		return view{State: state, Details: workflow.GetCurrentDetails(ctx)}, nil
	})
	if err != nil {
		return workflows.SegmentResult{}, err
	}
	return workflows.Segment(ctx, in)
}

func (e *env) execute(t *testing.T) (workflows.SegmentResult, error) {
	t.Helper()
	e.ExecuteWorkflow("observed", workflows.SegmentInput{Version: workflows.Version, Ref: testRef(), Source: here})
	if !e.IsWorkflowCompleted() {
		t.Fatal("the workflow has not completed")
	}
	if err := e.GetWorkflowError(); err != nil {
		return workflows.SegmentResult{}, err
	}
	var result workflows.SegmentResult
	if err := e.GetWorkflowResult(&result); err != nil {
		t.Fatal(err)
	}
	return result, nil
}

func (e *env) view(t *testing.T) view {
	t.Helper()
	value, err := e.QueryWorkflow("view")
	if err != nil {
		t.Fatal(err)
	}
	var v view
	if err := value.Get(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// answer records what became of an update.
type answer struct {
	accepted  bool
	completed bool
	err       error
	value     any
}

func (e *env) update(name string) *answer {
	a := &answer{}
	e.UpdateWorkflow(name, name+"-"+time.Now().String(), &testsuite.TestUpdateCallback{
		OnAccept:   func() { a.accepted = true },
		OnReject:   func(err error) { a.err = err },
		OnComplete: func(v any, err error) { a.completed, a.value, a.err = true, v, err },
	})
	return a
}

func TestASegmentCompletesWithItsObjects(t *testing.T) {
	e := newEnv(t, []attempt{succeed}, []attempt{never(t)})
	result, err := e.execute(t)
	if err != nil {
		t.Fatal(err)
	}
	if result.Version != workflows.Version || result.Ref.Last != testRef().Last || len(result.Objects) != 1 || result.Objects[0] != stored.Objects[0] {
		t.Errorf("result is %+v", result)
	}
	v := e.view(t)
	if v.State != string(workflows.Done) {
		t.Errorf("TidemarkState is %q, want done", v.State)
	}
	for _, want := range []string{stored.Objects[0].Key, "12,345 rows", "4.0 KiB"} {
		if !strings.Contains(v.Details, want) {
			t.Errorf("details %q lack %q", v.Details, want)
		}
	}
	if calls := e.upload.calls(); len(calls) != 1 || calls[0].Source != here || calls[0].Again || calls[0].Version != activities.Version {
		t.Errorf("uploads asked for: %+v", calls)
	}
}

func TestRetryableErrorsAreRetriedWithGrowingPauses(t *testing.T) {
	fails := failWith(activities.StoreUnavailable, "the store is away")
	attempts := make([]attempt, 0, 9)
	for range 8 {
		attempts = append(attempts, fails)
	}
	e := newEnv(t, append(attempts, succeed), []attempt{never(t)})
	start := e.Now()
	if _, err := e.execute(t); err != nil {
		t.Fatal(err)
	}
	// 1, 2, 4, 8, 16 and 32 s, then twice a minute; pauses that go on growing would
	// make it 255 s. What the attempts take is real time, and counts.
	if got, want := e.Now().Sub(start), 183*time.Second; got < want-time.Second || got > want+50*time.Second {
		t.Errorf("9 attempts took %s, want about %s", got, want)
	}
	if n := len(e.upload.calls()); n != 9 {
		t.Errorf("%d attempts, want 9", n)
	}
}

func TestAPermanentErrorWaitsForRetry(t *testing.T) {
	e := newEnv(t, []attempt{failWith(activities.MalformedMessage, "no decoder understands it"), succeed}, []attempt{never(t)})
	var waiting view
	var retry *answer
	e.RegisterDelayedCallback(func() { waiting = e.view(t) }, time.Hour)
	e.RegisterDelayedCallback(func() { retry = e.update(workflows.RetryUpdate) }, 2*time.Hour)
	result, err := e.execute(t)
	if err != nil {
		t.Fatal(err)
	}
	if waiting.State != string(workflows.Waiting) {
		t.Errorf("TidemarkState is %q, want waiting", waiting.State)
	}
	for _, want := range []string{"no decoder understands it", "--name retry", "--name quarantine", "12,345 rows", "0/16B3748"} {
		if !strings.Contains(waiting.Details, want) {
			t.Errorf("details %q lack %q", waiting.Details, want)
		}
	}
	if !retry.accepted || !retry.completed || retry.err != nil {
		t.Errorf("the update retry: %+v", retry)
	}
	if result.Quarantined || e.view(t).State != string(workflows.Done) {
		t.Errorf("result %+v, state %q", result, e.view(t).State)
	}
	if calls := e.upload.calls(); len(calls) != 2 || !calls[1].Again {
		t.Errorf("the second upload has to look for the object first: %+v", calls)
	}
}

func TestQuarantineIsNotOfferedWhereItIsNoWayOut(t *testing.T) {
	e := newEnv(t, []attempt{failWith(activities.AnotherLake, "another lake"), succeed}, []attempt{never(t)})
	e.RegisterDelayedCallback(func() {
		if v := e.view(t); v.State != string(workflows.Waiting) || strings.Contains(v.Details, "quarantine") {
			t.Errorf("view is %+v", v)
		}
		e.update(workflows.RetryUpdate)
	}, time.Hour)
	if _, err := e.execute(t); err != nil {
		t.Fatal(err)
	}
}

func TestAWaitingSegmentCanBePutIntoQuarantine(t *testing.T) {
	e := newEnv(t, []attempt{failWith(activities.MalformedMessage, "no decoder understands it")}, []attempt{putAside})
	var quarantine *answer
	e.RegisterDelayedCallback(func() { quarantine = e.update(workflows.QuarantineUpdate) }, time.Hour)
	result, err := e.execute(t)
	if err != nil {
		t.Fatal(err)
	}
	if !result.Quarantined || !strings.HasPrefix(result.Objects[0].Key, "_quarantine/") {
		t.Errorf("result is %+v", result)
	}
	if v := e.view(t); v.State != string(workflows.Quarantined) || !strings.Contains(v.Details, "_quarantine/") {
		t.Errorf("view is %+v", v)
	}
	if !quarantine.completed || quarantine.err != nil {
		t.Errorf("the update did not wait for the end: %+v", quarantine)
	}
	if got, ok := quarantine.value.(workflows.SegmentResult); !ok || !got.Quarantined {
		t.Errorf("the update returned %+v", quarantine.value)
	}
	if calls := e.quarantine.calls(); len(calls) != 1 || !calls[0].Again {
		t.Errorf("quarantines asked for: %+v", calls)
	}
}

func TestAQuarantineThatFailsWaitsAgain(t *testing.T) {
	e := newEnv(t, []attempt{failWith(activities.MalformedMessage, "malformed")},
		[]attempt{failWith(activities.LakeConflict, "other rows there"), putAside})
	var first, second *answer
	e.RegisterDelayedCallback(func() { first = e.update(workflows.QuarantineUpdate) }, time.Hour)
	e.RegisterDelayedCallback(func() {
		if v := e.view(t); v.State != string(workflows.Waiting) || !strings.Contains(v.Details, "other rows there") {
			t.Errorf("view is %+v", v)
		}
		second = e.update(workflows.QuarantineUpdate)
	}, 2*time.Hour)
	if _, err := e.execute(t); err != nil {
		t.Fatal(err)
	}
	if !first.completed || first.err == nil || !strings.Contains(first.err.Error(), "other rows there") {
		t.Errorf("the first update: %+v", first)
	}
	if !second.completed || second.err != nil {
		t.Errorf("the second update: %+v", second)
	}
}

func TestTheSourceSignalMovesARunningAttempt(t *testing.T) {
	e := newEnv(t, []attempt{hangUnlessAt(t, there, succeed)}, []attempt{never(t)})
	e.RegisterDelayedCallback(func() { e.SignalWorkflow(workflows.SourceSignal, there) }, 10*time.Millisecond)
	if _, err := e.execute(t); err != nil {
		t.Fatal(err)
	}
	for _, call := range e.upload.calls() {
		if call.Again != (call.Source == there) {
			t.Errorf("asked for: %+v", call)
		}
	}
}

func TestTheSourceSignalEndsABackoff(t *testing.T) {
	e := newEnv(t, []attempt{unlessAt(there, failWith(activities.FetchFailed, "nobody there"), succeed)}, []attempt{never(t)})
	start := e.Now()
	// Attempts at 0, 1, 3, 7, 15 and 31 s; the next would be at 63 s. What they
	// take is real time, and counts.
	e.RegisterDelayedCallback(func() { e.SignalWorkflow(workflows.SourceSignal, there) }, 32*time.Second)
	if _, err := e.execute(t); err != nil {
		t.Fatal(err)
	}
	if took := e.Now().Sub(start); took > time.Minute {
		t.Errorf("done after %s: the pause was waited for", took)
	}
	if calls := e.upload.calls(); calls[len(calls)-1].Source != there {
		t.Errorf("uploads asked for: %+v", calls)
	}
}

func TestASignalWithTheSameSourceChangesNothing(t *testing.T) {
	release := make(chan struct{})
	e := newEnv(t, []attempt{func(ctx context.Context, _ activities.UploadInput) (activities.UploadResult, error) {
		select {
		case <-release:
			return stored, nil
		case <-ctx.Done():
			return activities.UploadResult{}, ctx.Err()
		}
	}}, []attempt{never(t)})
	e.RegisterDelayedCallback(func() { e.SignalWorkflow(workflows.SourceSignal, here) }, 10*time.Millisecond)
	e.RegisterDelayedCallback(func() { e.SignalWorkflow(workflows.SourceSignal, segment.Location{}) }, 20*time.Millisecond)
	e.RegisterDelayedCallback(func() { close(release) }, 30*time.Millisecond)
	if _, err := e.execute(t); err != nil {
		t.Fatal(err)
	}
	if n := len(e.upload.calls()); n != 1 {
		t.Errorf("%d uploads, want 1", n)
	}
}

func TestASignalWhileWaitingIsKeptForTheRetry(t *testing.T) {
	e := newEnv(t, []attempt{failWith(activities.MalformedMessage, "malformed"), succeed}, []attempt{never(t)})
	e.RegisterDelayedCallback(func() { e.SignalWorkflow(workflows.SourceSignal, there) }, time.Hour)
	e.RegisterDelayedCallback(func() {
		if n := len(e.upload.calls()); n != 1 {
			t.Errorf("%d uploads before the retry, want 1", n)
		}
		e.update(workflows.RetryUpdate)
	}, 2*time.Hour)
	if _, err := e.execute(t); err != nil {
		t.Fatal(err)
	}
	if calls := e.upload.calls(); len(calls) != 2 || calls[1].Source != there {
		t.Errorf("uploads asked for: %+v", calls)
	}
}

func TestRetryEndsABackoff(t *testing.T) {
	e := newEnv(t, []attempt{failWith(activities.StoreDenied, "denied"), failWith(activities.StoreDenied, "denied"),
		failWith(activities.StoreDenied, "denied"), failWith(activities.StoreDenied, "denied"), failWith(activities.StoreDenied, "denied"), succeed}, []attempt{never(t)})
	start := e.Now()
	// Attempts at 0, 1, 3, 7 and 15 s; the next would be at 31 s.
	e.RegisterDelayedCallback(func() { e.update(workflows.RetryUpdate) }, 16*time.Second)
	if _, err := e.execute(t); err != nil {
		t.Fatal(err)
	}
	if took := e.Now().Sub(start); took > 30*time.Second {
		t.Errorf("done after %s: the pause was waited for", took)
	}
}

func TestUpdatesAreRefusedWhenTheyMakeNoSense(t *testing.T) {
	refused := make(chan struct{})
	e := newEnv(t, []attempt{func(ctx context.Context, in activities.UploadInput) (activities.UploadResult, error) {
		<-refused
		return failWith(activities.MalformedMessage, "malformed")(ctx, in)
	}}, []attempt{hangUnlessAt(t, there, putAside)})
	var early, again, late *answer
	e.RegisterDelayedCallback(func() {
		early = e.update(workflows.QuarantineUpdate)
		close(refused)
	}, 10*time.Millisecond)
	e.RegisterDelayedCallback(func() { e.update(workflows.QuarantineUpdate) }, time.Hour)
	e.RegisterDelayedCallback(func() {
		again = e.update(workflows.QuarantineUpdate)
		late = e.update(workflows.RetryUpdate)
	}, time.Hour+10*time.Millisecond)
	e.RegisterDelayedCallback(func() { e.SignalWorkflow(workflows.SourceSignal, there) }, time.Hour+20*time.Millisecond)
	if _, err := e.execute(t); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		got  *answer
		want string
	}{
		"quarantine while uploading":    {early, "is uploading: quarantine is for one that waits"},
		"quarantine while quarantining": {again, "already"},
		"retry while quarantining":      {late, "cannot be uploaded any more"},
	} {
		if tc.got.accepted || tc.got.err == nil || !strings.Contains(tc.got.err.Error(), tc.want) {
			t.Errorf("%s: %+v, want a refusal with %q", name, tc.got, tc.want)
		}
	}
}

func TestACanceledWorkflowEndsCanceled(t *testing.T) {
	for name, first := range map[string]attempt{
		"while uploading": hang(t),
		"while waiting":   failWith(activities.MalformedMessage, "malformed"),
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, []attempt{first}, []attempt{never(t)})
			e.RegisterDelayedCallback(e.CancelWorkflow, 50*time.Millisecond)
			_, err := e.execute(t)
			if _, canceled := errors.AsType[*temporal.CanceledError](err); !canceled {
				t.Errorf("ended with %v, want a cancellation", err)
			}
		})
	}
}

func TestAnInputOfANewerReleaseFailsTheTaskAndNotTheSegment(t *testing.T) {
	e := newEnv(t, []attempt{succeed}, []attempt{never(t)})
	e.ExecuteWorkflow("observed", workflows.SegmentInput{Version: workflows.Version + 1, Ref: testRef(), Source: here})
	if err := e.GetWorkflowError(); err == nil || !strings.Contains(err.Error(), "upgrade the workers") {
		t.Errorf("the task failed with %v", err)
	}
	if n := len(e.upload.calls()); n != 0 {
		t.Errorf("%d uploads of an input that is not understood", n)
	}
}
