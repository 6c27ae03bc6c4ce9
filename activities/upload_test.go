package activities_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/tidemark-cdc/tidemark/activities"
	"github.com/tidemark-cdc/tidemark/internal/flight"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/leaktest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// patience is how long an environment waits for an activity; by itself it waits
// for three seconds.
const patience = 2 * time.Minute

func newSuite() *testsuite.WorkflowTestSuite {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	return &suite
}

type activityFunc func(context.Context, activities.UploadInput) (activities.UploadResult, error)

// once runs one first attempt of an activity.
func once(t *testing.T, ctx context.Context, fn activityFunc, in activities.UploadInput) (activities.UploadResult, error) {
	t.Helper()
	suite := newSuite()
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(patience)
	env.SetWorkerOptions(worker.Options{BackgroundActivityContext: ctx})
	env.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: "once"})
	value, err := env.ExecuteActivity("once", in)
	if err != nil {
		return activities.UploadResult{}, err
	}
	var out activities.UploadResult
	if err := value.Get(&out); err != nil {
		t.Fatal(err)
	}
	return out, nil
}

// retried runs an activity as Temporal does, with at most n attempts, and says
// how long it took on the environment's clock.
func retried(t *testing.T, fn activityFunc, in activities.UploadInput, n int32) (activities.UploadResult, time.Duration, error) {
	t.Helper()
	suite := newSuite()
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(patience)
	env.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: "retried"})
	env.RegisterWorkflowWithOptions(func(ctx workflow.Context, in activities.UploadInput) (out activities.UploadResult, err error) {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: 10 * time.Minute,
			RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumAttempts: n},
		})
		err = workflow.ExecuteActivity(ctx, "retried", in).Get(ctx, &out)
		return out, err
	}, workflow.RegisterOptions{Name: "test"})
	start := env.Now()
	env.ExecuteWorkflow("test", in)
	took := env.Now().Sub(start)
	if err := env.GetWorkflowError(); err != nil {
		return activities.UploadResult{}, took, err
	}
	var out activities.UploadResult
	if err := env.GetWorkflowResult(&out); err != nil {
		t.Fatal(err)
	}
	return out, took, nil
}

func TestUploadStoresTheObject(t *testing.T) {
	f := newFixture(t)
	out, err := once(t, t.Context(), f.Upload, f.input())
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Objects) != 1 || out.Objects[0].Key != lake.Key(f.ref) || out.Objects[0].Rows != 5 || out.Objects[0].Bytes == 0 || out.Existed || out.Quarantined || out.Version != activities.Version {
		t.Errorf("result is %+v", out)
	}
	if got := f.metadata(t, lake.Key(f.ref)); got != lake.MetadataOf(f.ref) {
		t.Errorf("the object says %+v", got)
	}
	if f.store.heads != 0 || f.store.puts != 1 {
		t.Errorf("a first attempt cost %d HEAD and %d PUT, want 0 and 1", f.store.heads, f.store.puts)
	}
}

func TestALostAnswerIsSuccessOnTheNextAttempt(t *testing.T) {
	f := newFixture(t)
	f.store.putErr, f.store.lost = storeFailure(lake.Unreachable, 0), true
	out, _, err := retried(t, f.Upload, f.input(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if !out.Existed || out.Objects[0].Key != lake.Key(f.ref) || out.Objects[0].Rows != 5 {
		t.Errorf("result is %+v", out)
	}
	if fetched, _ := f.source.fetches(); fetched != 1 || f.store.puts != 1 {
		t.Errorf("%d fetches and %d PUTs: the second attempt did not look first", fetched, f.store.puts)
	}
}

func TestALaterScheduleLooksForTheObjectFirst(t *testing.T) {
	f := newFixture(t)
	if _, err := once(t, t.Context(), f.Upload, f.input()); err != nil {
		t.Fatal(err)
	}
	in := f.input()
	in.Again = true
	out, err := once(t, t.Context(), f.Upload, in)
	if err != nil || !out.Existed {
		t.Fatalf("result is %+v, %v", out, err)
	}
	if fetched, _ := f.source.fetches(); fetched != 1 {
		t.Errorf("%d fetches, want 1", fetched)
	}
}

func TestRowsThatAreGone(t *testing.T) {
	for _, gone := range []error{segment.ErrGone, segment.ErrUnknown} {
		for _, where := range []string{"Fetch", "Next"} {
			t.Run(fmt.Sprintf("%s says: %v", where, gone), func(t *testing.T) {
				f := newFixture(t)
				set := func(err error) {
					if where == "Fetch" {
						f.source.fetchErr = err
					} else {
						f.source.nextErr = err
					}
				}
				set(fmt.Errorf("segment: %w", gone))
				_, err := once(t, t.Context(), f.Upload, f.input())
				wantError(t, err, map[error]activities.Class{segment.ErrGone: activities.RowsGone, segment.ErrUnknown: activities.RowsUnknown}[gone])

				set(nil)
				if _, err := once(t, t.Context(), f.Upload, f.input()); err != nil {
					t.Fatal(err)
				}
				set(gone)
				out, err := once(t, t.Context(), f.Upload, f.input())
				if err != nil || !out.Existed {
					t.Errorf("the object is there: got %+v, %v", out, err)
				}
			})
		}
	}
}

// wantError checks the class, and what holds of every error's text.
func wantError(t *testing.T, err error, class activities.Class, texts ...string) {
	t.Helper()
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	if !ok {
		t.Fatalf("got %v, want an error of the class %s", err, class)
	}
	if app.Type() != string(class) || app.NonRetryable() != class.Permanent() {
		t.Errorf("class %s, permanent %t, want %s, %t: %v", app.Type(), app.NonRetryable(), class, class.Permanent(), err)
	}
	for _, want := range append(texts, "orders", "0/100", "00000001-0000000000000100-0000000000") {
		if !strings.Contains(app.Message(), want) {
			t.Errorf("the text %q lacks %q", app.Message(), want)
		}
	}
	if strings.Contains(err.Error(), rowData) {
		t.Errorf("the text holds row data: %q", err)
	}
}

func TestEachErrorHasItsClass(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(*fixture, *activities.UploadInput)
		want    activities.Class
		text    string
	}{
		"the streamer is catching up": {func(f *fixture, _ *activities.UploadInput) { f.source.fetchErr = segment.ErrNotYet }, activities.RowsNotYet, "127.0.0.1:4001"},
		"the streamer is unreachable": {func(f *fixture, _ *activities.UploadInput) { f.source.dialErr = flight.ErrUnreachable }, activities.FetchFailed, "check that the streamer runs"},
		"the stream breaks":           {func(f *fixture, _ *activities.UploadInput) { f.source.nextErr = errors.New("connection reset") }, activities.FetchFailed, "connection reset"},
		"a row is missing": {func(f *fixture, _ *activities.UploadInput) { f.source.changes = f.source.changes[:4] }, activities.RowsDiffer,
			"4 rows"},
		"there are rows too many": {func(f *fixture, _ *activities.UploadInput) { f.source.changes = changes(9) }, activities.RowsDiffer, "are not the dispatched ones"},
		"a byte is another": {func(f *fixture, _ *activities.UploadInput) {
			f.source.changes = changes(5)
			f.source.changes[3].Raw[12] ^= 1
		}, activities.RowsDiffer, "digest"},
		"a message was cut in transit": {func(f *fixture, _ *activities.UploadInput) {
			f.source.changes = changes(5)
			f.source.changes[3].Raw = f.source.changes[3].Raw[:9]
		}, activities.RowsDiffer, "fetched again"},
		"nobody understands a message": {func(f *fixture, in *activities.UploadInput) {
			f.source.changes[3].Raw = f.source.changes[3].Raw[:9]
			in.Ref = refOf(f.source.changes)
		}, activities.MalformedMessage, "quarantine"},
		"the lake is another": {func(_ *fixture, in *activities.UploadInput) { in.Ref.Lake = "s3://other/lake" }, activities.AnotherLake,
			"this worker is configured for the lake s3://bucket/lake"},
		"the reference makes no sense":   {func(_ *fixture, in *activities.UploadInput) { in.Ref.Rows = 0 }, activities.BadReference, "started by hand"},
		"the input is of a newer worker": {func(_ *fixture, in *activities.UploadInput) { in.Version++ }, activities.WorkerTooOld, "upgrade"},
		"other rows are in the lake": {func(f *fixture, in *activities.UploadInput) {
			suite := newSuite()
			env := suite.NewTestActivityEnvironment()
			env.SetTestTimeout(patience)
			env.RegisterActivity(f.Upload)
			if _, err := env.ExecuteActivity(f.Upload, *in); err != nil {
				panic(err)
			}
			f.source.changes = changes(5)
			f.source.changes[2].XID++
			in.Ref = refOf(f.source.changes)
		}, activities.LakeConflict, "nothing was overwritten"},
		"the store is throttling":    {storeFails(lake.Throttled), activities.StoreThrottled, "the store says no"},
		"the store is unavailable":   {storeFails(lake.Unavailable), activities.StoreUnavailable, ""},
		"the store is unreachable":   {storeFails(lake.Unreachable), activities.StoreUnreachable, ""},
		"the store denies":           {storeFails(lake.Denied), activities.StoreDenied, ""},
		"the bucket is missing":      {storeFails(lake.MissingBucket), activities.StoreMissingBucket, ""},
		"the store is misconfigured": {storeFails(lake.Misconfigured), activities.StoreMisconfigured, ""},
		"the store is full":          {storeFails(lake.Full), activities.StoreFull, ""},
		"the store is odd":           {storeFails(lake.Unknown), activities.StoreFailed, ""},
		"the look fails": {func(f *fixture, in *activities.UploadInput) {
			in.Again, f.store.headErr = true, storeFailure(lake.Unavailable, 0)
		}, activities.StoreUnavailable, "look for the object"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			in := f.input()
			tc.prepare(f, &in)
			_, err := once(t, t.Context(), f.Upload, in)
			wantError(t, err, tc.want, "upload segment", tc.text)
		})
	}
}

func storeFails(kind lake.FailureKind) func(*fixture, *activities.UploadInput) {
	return func(f *fixture, _ *activities.UploadInput) {
		f.store.putErr, f.store.always = storeFailure(kind, 0), true
	}
}

func TestAStoresOwnPauseIsKept(t *testing.T) {
	for name, tc := range map[string]struct{ asked, want time.Duration }{
		"as asked":            {42 * time.Second, 42 * time.Second},
		"at most ten minutes": {24 * time.Hour, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.store.putErr = storeFailure(lake.Throttled, tc.asked)
			_, took, err := retried(t, f.Upload, f.input(), 3)
			if err != nil {
				t.Fatal(err)
			}
			if took < tc.want-time.Second || took > tc.want+30*time.Second {
				t.Errorf("the next attempt came after %s, want %s", took, tc.want)
			}
		})
	}
}

func TestRowsThatAreReadAgainAreAskedForEveryOtherSecond(t *testing.T) {
	f := newFixture(t)
	f.source.fetchErr = segment.ErrNotYet
	_, took, err := retried(t, f.Upload, f.input(), 8)
	// With pauses that grow it were two minutes. What the attempts take is real
	// time, and counts.
	if err == nil || took < 13*time.Second || took > time.Minute {
		t.Errorf("8 attempts took %s and ended with %v", took, err)
	}
}

func TestStopsFromOutside(t *testing.T) {
	for name, tc := range map[string]struct {
		cause error
		check func(error) bool
	}{
		"canceled by the workflow": {temporal.NewCanceledError(), temporal.IsCanceledError},
		"paused":                   {activity.ErrActivityPaused, func(err error) bool { return strings.Contains(err.Error(), activity.ErrActivityPaused.Error()) }},
		"reset":                    {activity.ErrActivityReset, func(err error) bool { return strings.Contains(err.Error(), activity.ErrActivityReset.Error()) }},
		"the worker stops": {worker.ErrWorkerShutdown, func(err error) bool {
			app, ok := errors.AsType[*temporal.ApplicationError](err)
			return ok && app.Type() == string(activities.AttemptStopped) && !app.NonRetryable()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.source.block = make(chan struct{})
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			stopped := make(chan struct{})
			go func() {
				defer close(stopped)
				select {
				case <-f.source.asked:
				case <-ctx.Done():
				}
				stop(tc.cause)
			}()
			_, err := once(t, ctx, f.Upload, f.input())
			stop(nil)
			<-stopped
			if err == nil || !tc.check(err) {
				t.Errorf("ended with %v", err)
			}
			if f.store.puts != 0 {
				t.Error("something was stored")
			}
		})
	}
}

func TestHeartbeatsTellTheProgress(t *testing.T) {
	f := newFixture(t)
	f.HeartbeatEvery = time.Millisecond
	f.source.block = make(chan struct{})
	suite := newSuite()
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(patience)
	env.RegisterActivity(f.Upload)
	seen := make(chan activities.Progress, 1)
	env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
		var p activities.Progress
		if err := details.Get(&p); err == nil && p.Step == activities.StepFetch {
			select {
			case seen <- p:
				close(f.source.block)
			default:
			}
		}
	})
	if _, err := env.ExecuteActivity(f.Upload, f.input()); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 1 {
		t.Error("no heartbeat came while the rows were waited for")
	}
}

func TestQuarantineStoresTheRawMessages(t *testing.T) {
	f := newFixture(t)
	f.source.changes[3].Raw = f.source.changes[3].Raw[:9]
	f.ref = refOf(f.source.changes)
	f.store.putErr, f.store.lost = storeFailure(lake.Unreachable, 0), true
	out, _, err := retried(t, f.Quarantine, f.input(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if !out.Quarantined || !out.Existed || out.Objects[0].Key != lake.QuarantineKey(f.ref) || out.Objects[0].Rows != 5 {
		t.Errorf("result is %+v", out)
	}
	if got := f.metadata(t, lake.QuarantineKey(f.ref)); got != lake.MetadataOf(f.ref) {
		t.Errorf("the object says %+v", got)
	}
}

func TestNothingIsBothInTheLakeAndInQuarantine(t *testing.T) {
	t.Run("quarantine finds the object", func(t *testing.T) {
		f := newFixture(t)
		if _, err := once(t, t.Context(), f.Upload, f.input()); err != nil {
			t.Fatal(err)
		}
		out, err := once(t, t.Context(), f.Quarantine, f.input())
		if err != nil || out.Quarantined || !out.Existed || f.store.puts != 1 {
			t.Errorf("result is %+v, %v after %d PUTs", out, err, f.store.puts)
		}
	})
	t.Run("a later upload finds the quarantine", func(t *testing.T) {
		f := newFixture(t)
		if _, err := once(t, t.Context(), f.Quarantine, f.input()); err != nil {
			t.Fatal(err)
		}
		in := f.input()
		in.Again = true
		out, err := once(t, t.Context(), f.Upload, in)
		if err != nil || !out.Quarantined || !out.Existed || f.store.puts != 1 {
			t.Errorf("result is %+v, %v after %d PUTs", out, err, f.store.puts)
		}
	})
}
