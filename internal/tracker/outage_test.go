package tracker_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"

	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/internal/tracker"
	"github.com/tidemark-cdc/tidemark/internal/tracker/trackertest"
)

// spoiler makes calls of one method fail while it is on.
type spoiler struct {
	method string
	err    error
	left   atomic.Int64 // calls yet to fail
	failed atomic.Int64
}

func (s *spoiler) spoil(method string) error {
	if method == s.method && s.left.Add(-1) >= 0 {
		s.failed.Add(1)
		return s.err
	}
	return nil
}

func ready(t *testing.T, f *trackertest.Frontend, change func(*tracker.Config)) *tracker.Tracker {
	t.Helper()
	trackertest.NewFrontend(t, f)
	tr := newTracker(t, f, change)
	if _, err := tr.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestAStartWhoseAnswerIsLostComesOutAsOurOwnRecord(t *testing.T) {
	// The SDK repeats a call by itself when Temporal is unavailable, with the
	// same request ID; an error that it does not repeat reaches us.
	lost := &spoiler{method: "StartWorkflowExecution", err: serviceerror.NewDataLoss("the answer is lost")}
	tr := ready(t, &trackertest.Frontend{After: lost.spoil}, nil)
	lost.left.Store(1)
	ref := trackertest.Ref("orders", 0, 4)
	rec, err := tr.Start(bounded(t), ref, at)
	if err != nil || rec.State != segment.Running || rec.Ref.Last != ref.Last {
		t.Fatalf("record is %+v, %v", rec, err)
	}
	again, err := tr.Describe(bounded(t), "orders", ref.First)
	if err != nil || again.RunID != rec.RunID {
		t.Errorf("described as %+v, %v", again, err)
	}
	if lost.failed.Load() != 1 {
		t.Errorf("%d answers were lost", lost.failed.Load())
	}
}

// Under load a server can lose what it would have told a poll. The ack must not
// stand still for it until the poll expires, which here it never does.
func TestAnEndThatALongPollMissesIsSeenAllTheSame(t *testing.T) {
	front := &trackertest.Frontend{Deaf: true}
	tr := ready(t, front, nil)
	ref := trackertest.Ref("orders", 0, 4)
	rec, err := tr.Start(bounded(t), ref, at)
	if err != nil {
		t.Fatal(err)
	}
	front.Finish(ref.WorkflowID())
	if got, err := tr.Await(bounded(t), rec); err != nil || got.State != segment.Completed || got.RunID != rec.RunID {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAnOutageIsSaidOnceAndOutlasted(t *testing.T) {
	down := &spoiler{method: "DescribeWorkflowExecution", err: serviceerror.NewDataLoss("down for a while")}
	var mu sync.Mutex
	var logs bytes.Buffer
	var calls []time.Time
	tr := ready(t, &trackertest.Frontend{Before: down.spoil}, func(c *tracker.Config) {
		c.Logger = slog.New(slog.NewTextHandler(&logs, nil))
		c.OnOutage = func(since time.Time, _ error) {
			mu.Lock()
			defer mu.Unlock()
			calls = append(calls, since)
		}
	})
	down.left.Store(20)
	rec, err := tr.Describe(bounded(t), "orders", trackertest.Ref("orders", 0, 4).First)
	if err != nil || rec.State != segment.None {
		t.Fatalf("record is %+v, %v", rec, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(calls) != 2 || calls[0].IsZero() || !calls[1].IsZero() {
		t.Errorf("told about outages: %v, want a beginning and an end", calls)
	}
	if n := strings.Count(logs.String(), "Temporal is unreachable"); n != 1 || !strings.Contains(logs.String(), "Temporal answers again") {
		t.Errorf("the log says it %d times:\n%s", n, logs.String())
	}
}

func TestAnOutageEndsWithTheContext(t *testing.T) {
	down := &spoiler{method: "StartWorkflowExecution", err: serviceerror.NewDataLoss("down for good")}
	tr := ready(t, &trackertest.Frontend{Before: down.spoil}, nil)
	down.left.Store(1 << 40)
	over := errors.New("the streamer stops")
	ctx, cancel := context.WithCancelCause(bounded(t))
	timer := time.AfterFunc(50*time.Millisecond, func() { cancel(over) })
	defer timer.Stop()
	if _, err := tr.Start(ctx, trackertest.Ref("orders", 0, 4), at); !errors.Is(err, over) {
		t.Errorf("ended with %v", err)
	}
}

func TestAServerThatHangsIsAnOutageToo(t *testing.T) {
	hung := make(chan struct{})
	var hang atomic.Bool
	noticed := make(chan struct{})
	tr := ready(t, &trackertest.Frontend{Before: func(method string) error {
		if hang.Load() && method == "DescribeWorkflowExecution" {
			<-hung
		}
		return nil
	}}, func(c *tracker.Config) {
		c.CallTimeout = 2 * time.Second // the other calls have to come through in that time
		c.OnOutage = func(since time.Time, _ error) {
			if !since.IsZero() {
				hang.Store(false)
				close(hung)
				close(noticed)
			}
		}
	})
	hang.Store(true)
	if _, err := tr.Describe(bounded(t), "orders", trackertest.Ref("orders", 0, 4).First); err != nil {
		t.Fatal(err)
	}
	<-noticed
}

func TestStartsWaitForAttributesThatWereJustRegistered(t *testing.T) {
	fresh := &spoiler{method: "StartWorkflowExecution", err: serviceerror.NewInvalidArgument("Namespace default has no mapping defined for search attribute TidemarkDay")}
	f := &trackertest.Frontend{Before: fresh.spoil}
	tr := ready(t, f, nil)
	fresh.left.Store(5)
	if rec, err := tr.Start(bounded(t), trackertest.Ref("orders", 0, 4), at); err != nil || !rec.Started {
		t.Errorf("record is %+v, %v", rec, err)
	}
}

func TestStartsDoNotWaitForEverForAttributes(t *testing.T) {
	f := trackertest.NewFrontend(t, &trackertest.Frontend{})
	tr := newTracker(t, f, func(c *tracker.Config) { c.AttributePatience = 20 * time.Millisecond })
	_, err := tr.Start(bounded(t), trackertest.Ref("orders", 0, 4), at)
	if err == nil || !strings.Contains(err.Error(), "tidemark setup") {
		t.Errorf("ended with %v", err)
	}
}

func TestWhatCannotBeMendedIsNotRetried(t *testing.T) {
	for name, c := range map[string]struct {
		refusal error
		says    string
	}{
		"permission":        {serviceerror.NewPermissionDenied("no", "a test"), "Temporal refuses it"},
		"namespace":         {serviceerror.NewNamespaceNotFound("nowhere"), "temporal operator namespace create --namespace " + trackertest.Namespace},
		"a bad request":     {serviceerror.NewInvalidArgument("what is this"), "Temporal refuses it"},
		"an unknown method": {serviceerror.NewUnimplemented("old server"), "Temporal refuses it"},
	} {
		t.Run(name, func(t *testing.T) {
			no := &spoiler{method: "StartWorkflowExecution", err: c.refusal}
			tr := ready(t, &trackertest.Frontend{Before: no.spoil}, nil)
			no.left.Store(1 << 40)
			_, err := tr.Start(bounded(t), trackertest.Ref("orders", 0, 4), at)
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "tidemark/orders/") {
				t.Errorf("ended with %v", err)
			}
			if n := no.failed.Load(); n != 1 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

func TestAWorkflowThatVanishesBetweenTwoCallsIsNone(t *testing.T) {
	f := &trackertest.Frontend{}
	ref := trackertest.Ref("orders", 0, 4)
	f.Before = func(method string) error {
		if method == "DescribeWorkflowExecution" {
			f.Forget(ref.WorkflowID())
		}
		return nil
	}
	tr := ready(t, f, nil)
	if _, err := tr.Start(bounded(t), ref, at); err != nil {
		t.Fatal(err)
	}
	rec, err := tr.Start(bounded(t), ref, at)
	if err != nil || rec.State != segment.None || rec.Started {
		t.Errorf("record is %+v, %v", rec, err)
	}
}

func TestAFailedRunTellsWhy(t *testing.T) {
	f := &trackertest.Frontend{}
	tr := ready(t, f, nil)
	ref := trackertest.Ref("orders", 0, 4)
	rec, err := tr.Start(bounded(t), ref, at)
	if err != nil {
		t.Fatal(err)
	}
	f.Fail(ref.WorkflowID(), "someone's code")
	if rec, err = tr.Await(bounded(t), rec); err != nil || rec.State != segment.Broken || rec.Reason != "failed: someone's code" {
		t.Errorf("record is %+v, %v", rec, err)
	}
}

func TestAWaitSurvivesAnOutage(t *testing.T) {
	down := &spoiler{method: "GetWorkflowExecutionHistory", err: serviceerror.NewDataLoss("down")}
	f := &trackertest.Frontend{Before: down.spoil}
	tr := ready(t, f, nil)
	ref := trackertest.Ref("orders", 0, 4)
	rec, err := tr.Start(bounded(t), ref, at)
	if err != nil {
		t.Fatal(err)
	}
	down.left.Store(3)
	f.Finish(ref.WorkflowID())
	if rec, err = tr.Await(bounded(t), rec); err != nil || rec.State != segment.Completed {
		t.Errorf("record is %+v, %v", rec, err)
	}
}
