package trackertest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/internal/tracker"
	"github.com/tidemark-cdc/tidemark/workflows"
)

// Env is a Temporal to run the suite over.
type Env struct {
	Client    client.Client
	Namespace string
	// TaskQueue is where segments are started.
	TaskQueue string
	// Finish lets the open run of a workflow complete, and none that is opened
	// later.
	Finish func(id string)
	// Sources gives where the rows of a workflow were said to be by signals, and
	// maybe at its start, as far as that has had an effect yet, in order.
	Sources func(id string) []segment.Location
}

// bound is how long a part may take. A workflow task that a busy worker misses
// comes again after ten seconds.
const bound = 2 * time.Minute

var (
	here  = segment.Location{Instance: "a", Address: "127.0.0.1:4001"}
	there = segment.Location{Instance: "b", Address: "127.0.0.1:4002"}
)

// Ref is a reference of the pipeline, of the changes first to last of one
// transaction.
func Ref(pipeline string, first, last uint64) segment.Ref {
	at := func(n uint64) change.Position { return change.Position{Timeline: 1, LSN: 0x16B3748, Ordinal: n} }
	follows := change.JustBefore(1, 0x16B3748)
	if first > 0 {
		follows = at(first - 1)
	}
	rows := int64(last - first + 1)
	return segment.Ref{
		Pipeline: pipeline, SystemID: "7300000000000000001", Lake: "s3://bucket/lake",
		First: at(first), Last: at(last), Follows: follows, Day: 20000,
		Rows: rows, Bytes: 100 * rows, Digest: segment.Digest(first<<8 | last),
		Tables: []string{"public.orders"}, TableCount: 1,
	}
}

// Run checks the contract of package tracker over env. Each part has a pipeline
// of its own, so that env may be used before and after.
func Run(t *testing.T, env Env) {
	tr := tracker.New(env.Client, tracker.Config{
		TaskQueue: env.TaskQueue, Namespace: env.Namespace, Logger: slog.New(slog.DiscardHandler),
		MinBackoff: 10 * time.Millisecond, AttributePatience: bound,
		Heartbeat: time.Hour, // played uploads send none
	})
	// First of all: without the search attributes nothing can be started.
	t.Run("setup registers the search attributes once", func(t *testing.T) { testSetup(t, tr) })
	for _, part := range []struct {
		name string
		test func(*suite)
	}{
		{"a start records the boundary", (*suite).start},
		{"a second start adopts", (*suite).adopt},
		{"of many starts at once one wins", (*suite).race},
		{"a completed segment stays completed", (*suite).completed},
		{"a broken segment is not started over before it is adopted", (*suite).broken},
		{"a segment that was given up binds nobody", (*suite).givenUp},
		{"an operator's reset is told of", (*suite).reset},
		{"rows that moved are told to the open run", (*suite).redirect},
		{"a wait ends with its context", (*suite).ends},
		{"another workflow under the ID is refused", (*suite).foreign},
	} {
		t.Run(part.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeoutCause(t.Context(), bound, fmt.Errorf("it has taken more than %s", bound))
			defer cancel()
			pipeline := strings.ReplaceAll(fmt.Sprintf("%s-%d", t.Name(), time.Now().UnixNano()), "/", ".")
			part.test(&suite{T: t, Env: env, Tracker: tr, ctx: ctx, pipeline: pipeline})
		})
	}
}

// suite is one part of the contract being checked.
type suite struct {
	*testing.T
	Env
	*tracker.Tracker
	ctx      context.Context
	pipeline string
}

func testSetup(t *testing.T, tr *tracker.Tracker) {
	if _, err := tr.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Temporal's own caches show it within moments.
	deadline := time.Now().Add(bound)
	for {
		added, err := tr.Setup(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		problems := tr.Check(t.Context())
		if len(added) == 0 && len(problems) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after setup it still adds %q and finds %q", added, problems)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
}

// want fails the test unless rec and err are a record of that state and boundary.
func (s *suite) want(rec segment.Record, err error, state segment.State, ref segment.Ref, started bool) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
	if rec.State != state || rec.Started != started || rec.Ref.Last != ref.Last || rec.Ref.Digest != ref.Digest || rec.Ref.Follows != ref.Follows {
		s.Fatalf("record is %+v, want %s (started: %t) with the boundary %s", rec, state, started, ref.Last)
	}
	if (rec.RunID == "") != (state == segment.None) {
		s.Fatalf("record is %+v", rec)
	}
}

func (s *suite) start() {
	ref := Ref(s.pipeline, 0, 4)
	rec, err := s.Describe(s.ctx, s.pipeline, ref.First)
	s.want(rec, err, segment.None, segment.Ref{}, false)
	rec, err = s.Start(s.ctx, ref, here)
	s.want(rec, err, segment.Running, ref, true)
	found, err := s.Describe(s.ctx, s.pipeline, ref.First)
	s.want(found, err, segment.Running, ref, false)
	if age := time.Since(found.Since); age < -bound || age > 2*bound {
		s.Errorf("the run is found to have begun at %s", found.Since)
	}
	if found.RunID != rec.RunID || !slices.Equal(found.Ref.Tables, ref.Tables) || found.Ref.Lake != ref.Lake || found.Ref.Day != ref.Day {
		s.Errorf("started %+v, recorded %+v", rec, found)
	}
	s.Finish(ref.WorkflowID())
	rec, err = s.Await(s.ctx, rec)
	s.want(rec, err, segment.Completed, ref, false)
}

func (s *suite) adopt() {
	first, second := Ref(s.pipeline, 0, 4), Ref(s.pipeline, 0, 9)
	if _, err := s.Start(s.ctx, first, here); err != nil {
		s.Fatal(err)
	}
	rec, err := s.Start(s.ctx, second, there)
	s.want(rec, err, segment.Running, first, false)
	rec, err = s.Restart(s.ctx, first, there)
	s.want(rec, err, segment.Running, first, false)
	s.Finish(first.WorkflowID())
	rec, err = s.Await(s.ctx, rec)
	s.want(rec, err, segment.Completed, first, false)
}

func (s *suite) race() {
	const streamers = 8
	records := make([]segment.Record, streamers)
	errs := make([]error, streamers)
	var all sync.WaitGroup
	for i := range streamers {
		all.Go(func() { records[i], errs[i] = s.Start(s.ctx, Ref(s.pipeline, 0, uint64(i)), here) })
	}
	all.Wait()
	winner := slices.IndexFunc(records, func(r segment.Record) bool { return r.Started })
	if winner < 0 {
		s.Fatalf("nobody has started it: %v", errs)
	}
	for i, rec := range records {
		s.want(rec, errs[i], segment.Running, Ref(s.pipeline, 0, uint64(winner)), i == winner)
	}
	s.Finish(records[0].Ref.WorkflowID())
}

func (s *suite) completed() {
	ref := Ref(s.pipeline, 0, 4)
	rec, err := s.Start(s.ctx, ref, here)
	s.want(rec, err, segment.Running, ref, true)
	s.Finish(ref.WorkflowID())
	rec, err = s.Await(s.ctx, rec)
	s.want(rec, err, segment.Completed, ref, false)
	for name, ask := range map[string]func() (segment.Record, error){
		"Start":    func() (segment.Record, error) { return s.Start(s.ctx, Ref(s.pipeline, 0, 9), there) },
		"Restart":  func() (segment.Record, error) { return s.Restart(s.ctx, ref, there) },
		"Describe": func() (segment.Record, error) { return s.Describe(s.ctx, s.pipeline, ref.First) },
		"Await":    func() (segment.Record, error) { return s.Await(s.ctx, rec) },
	} {
		again, err := ask()
		s.want(again, err, segment.Completed, ref, false)
		if again.RunID != rec.RunID {
			s.Errorf("%s has come to another run", name)
		}
	}
	if err := s.Redirect(s.ctx, rec, there); err != nil {
		s.Errorf("redirect of a closed run: %v", err)
	}
}

func (s *suite) broken() {
	for i, breakIt := range []func(id string) error{
		func(id string) error {
			return s.Client.TerminateWorkflow(s.ctx, id, "", "an operator had enough")
		},
		func(id string) error { return s.Client.CancelWorkflow(s.ctx, id, "") },
	} {
		ref := Ref(s.pipeline, uint64(100*i), uint64(100*i+4))
		other := Ref(s.pipeline, uint64(100*i), uint64(100*i+9))
		first, err := s.Start(s.ctx, ref, here)
		s.want(first, err, segment.Running, ref, true)
		if err := breakIt(ref.WorkflowID()); err != nil {
			s.Fatal(err)
		}
		rec, err := s.Await(s.ctx, first)
		s.want(rec, err, segment.Broken, ref, false)
		if want := []string{"terminated: an operator had enough", "canceled"}[i]; rec.Reason != want {
			s.Errorf("reason is %q, want %q", rec.Reason, want)
		}
		rec, err = s.Start(s.ctx, other, there)
		s.want(rec, err, segment.Broken, ref, false)
		rec, err = s.Restart(s.ctx, other, there)
		s.want(rec, err, segment.Broken, ref, false)

		rec, err = s.Restart(s.ctx, ref, there)
		s.want(rec, err, segment.Running, ref, true)
		if rec.RunID == first.RunID {
			s.Error("the restart has the run of the broken one")
		}
		s.Finish(ref.WorkflowID())
		rec, err = s.Await(s.ctx, rec)
		s.want(rec, err, segment.Completed, ref, false)
	}
}

// Of three segments the first has completed, the second is open, and the third
// was terminated by somebody else.
func (s *suite) givenUp() {
	refs := []segment.Ref{Ref(s.pipeline, 0, 4), Ref(s.pipeline, 5, 9), Ref(s.pipeline, 10, 14)}
	for _, ref := range refs {
		rec, err := s.Start(s.ctx, ref, here)
		s.want(rec, err, segment.Running, ref, true)
	}
	done, err := s.Describe(s.ctx, s.pipeline, refs[0].First)
	s.want(done, err, segment.Running, refs[0], false)
	s.Finish(refs[0].WorkflowID())
	done, err = s.Await(s.ctx, done)
	s.want(done, err, segment.Completed, refs[0], false)
	if err := s.Client.TerminateWorkflow(s.ctx, refs[2].WorkflowID(), "", "an operator had enough"); err != nil {
		s.Fatal(err)
	}
	var open []segment.Record
	unfinished := func(after int, want ...segment.Ref) {
		s.Helper()
		s.eventually(fmt.Sprintf("%d are seen to be unfinished", len(want)), func() bool {
			if open, err = s.Unfinished(s.ctx, s.pipeline, Ref(s.pipeline, uint64(after), uint64(after)).First); err != nil {
				s.Fatal(err)
			}
			return slices.EqualFunc(open, want, func(rec segment.Record, ref segment.Ref) bool { return rec.Ref.First == ref.First })
		})
	}
	unfinished(5, refs[2])
	unfinished(0, refs[1], refs[2])
	for i, rec := range append(open, done) {
		if _, err := s.GiveUp(s.ctx, rec, "a test"); err != nil {
			s.Fatal(err)
		}
		// The process may have died before it knew.
		if _, err := s.GiveUp(s.ctx, rec, "a test"); err != nil {
			s.Errorf("given up again: %v", err)
		}
		if i < 2 {
			rec, err := s.Describe(s.ctx, s.pipeline, rec.Ref.First)
			s.want(rec, err, segment.Broken, rec.Ref, false)
			if !rec.GivenUp || !strings.Contains(rec.Reason, "a test") {
				s.Errorf("record is %+v", rec)
			}
		}
	}
	unfinished(0)
	rec, err := s.Start(s.ctx, refs[0], there)
	s.want(rec, err, segment.Completed, refs[0], false)
	other := Ref(s.pipeline, 5, 7)
	rec, err = s.Start(s.ctx, other, there)
	s.want(rec, err, segment.Running, other, true)
	rec, err = s.Start(s.ctx, refs[1], there)
	s.want(rec, err, segment.Running, other, false)
	s.Finish(other.WorkflowID())
	rec, err = s.Await(s.ctx, rec)
	s.want(rec, err, segment.Completed, other, false)
}

func (s *suite) reset() {
	ref := Ref(s.pipeline, 0, 4)
	first, err := s.Start(s.ctx, ref, here)
	s.want(first, err, segment.Running, ref, true)
	s.eventually("a workflow task has completed", func() bool { return Reset(s.ctx, s.Client, s.Namespace, ref.WorkflowID()) == nil })
	rec, err := s.Describe(s.ctx, s.pipeline, ref.First)
	s.want(rec, err, segment.Running, ref, false)
	if rec.RunID == first.RunID {
		s.Fatal("the reset has opened no other run")
	}
	// The run that the reset closed is not the end of it.
	rec, err = s.Await(s.ctx, first)
	s.want(rec, err, segment.Running, ref, false)
	if rec.RunID == first.RunID {
		s.Error("the record is of the run that the reset has closed")
	}
	if err := s.awaitBriefly(rec); err != nil {
		s.Error(err)
	}
	s.Finish(ref.WorkflowID())
	rec, err = s.Await(s.ctx, rec)
	s.want(rec, err, segment.Completed, ref, false)
	// A completed one runs again, too.
	if err := Reset(s.ctx, s.Client, s.Namespace, ref.WorkflowID()); err != nil {
		s.Fatal(err)
	}
	rec, err = s.Describe(s.ctx, s.pipeline, ref.First)
	s.want(rec, err, segment.Running, ref, false)
	s.Finish(ref.WorkflowID())
	rec, err = s.Await(s.ctx, rec)
	s.want(rec, err, segment.Completed, ref, false)
}

// Reset resets a workflow to its first task, as an operator does.
func Reset(ctx context.Context, c client.Client, namespace, id string) error {
	_, err := c.ResetWorkflowExecution(ctx, &workflowservice.ResetWorkflowExecutionRequest{
		Namespace:         namespace,
		WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id},
		Reason:            "a test", WorkflowTaskFinishEventId: 4, RequestId: fmt.Sprint(time.Now().UnixNano()),
	})
	return err
}

func (s *suite) redirect() {
	ref := Ref(s.pipeline, 0, 4)
	rec, err := s.Start(s.ctx, ref, here)
	s.want(rec, err, segment.Running, ref, true)
	if err := s.Redirect(s.ctx, rec, there); err != nil {
		s.Fatal(err)
	}
	s.eventually("the signal has had its effect", func() bool { return slices.Contains(s.Sources(ref.WorkflowID()), there) })
	s.Finish(ref.WorkflowID())
	rec, err = s.Await(s.ctx, rec)
	s.want(rec, err, segment.Completed, ref, false)
	unknown := segment.Record{Ref: Ref(s.pipeline, 50, 51)}
	if err := s.Redirect(s.ctx, unknown, there); err != nil {
		s.Errorf("redirect of a workflow that has vanished: %v", err)
	}
}

func (s *suite) ends() {
	ref := Ref(s.pipeline, 0, 4)
	rec, err := s.Start(s.ctx, ref, here)
	s.want(rec, err, segment.Running, ref, true)
	if err := s.awaitBriefly(rec); err != nil {
		s.Error(err)
	}
	s.Finish(ref.WorkflowID())
}

// awaitBriefly waits for a segment that does not end, and says what is wrong with
// how that wait ends when its context does.
func (s *suite) awaitBriefly(rec segment.Record) error {
	over := errors.New("the streamer stops")
	ctx, cancel := context.WithTimeoutCause(s.ctx, 100*time.Millisecond, over)
	defer cancel()
	if now, err := s.Await(ctx, rec); !errors.Is(err, over) {
		return fmt.Errorf("the wait ended with %+v, %v", now, err)
	}
	return nil
}

func (s *suite) foreign() {
	ref := Ref(s.pipeline, 0, 4)
	_, err := s.Client.ExecuteWorkflow(s.ctx, client.StartWorkflowOptions{ID: ref.WorkflowID(), TaskQueue: s.TaskQueue + "-nobody"}, "SomethingElse")
	if err != nil {
		s.Fatal(err)
	}
	if _, err := s.Start(s.ctx, ref, here); !errors.Is(err, tracker.ErrForeign) {
		s.Errorf("start: %v", err)
	}
	if _, err := s.Describe(s.ctx, s.pipeline, ref.First); !errors.Is(err, tracker.ErrForeign) {
		s.Errorf("describe: %v", err)
	}
	// One of our own type, whose memo is not ours.
	other := Ref(s.pipeline, 50, 51)
	_, err = s.Client.ExecuteWorkflow(s.ctx, client.StartWorkflowOptions{
		ID: other.WorkflowID(), TaskQueue: s.TaskQueue + "-nobody", Memo: map[string]any{"ref": "something"},
	}, workflows.SegmentName, workflows.SegmentInput{Version: 1})
	if err != nil {
		s.Fatal(err)
	}
	if _, err := s.Start(s.ctx, other, here); !errors.Is(err, tracker.ErrForeign) {
		s.Errorf("start over a memo of another kind: %v", err)
	}
	for _, id := range []string{ref.WorkflowID(), other.WorkflowID()} {
		if err := s.Client.TerminateWorkflow(s.ctx, id, "", "the test is over"); err != nil {
			s.Error(err)
		}
	}
}

// eventually waits for a condition.
func (s *suite) eventually(what string, holds func() bool) {
	s.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			s.Fatalf("waiting until %s: %v", what, context.Cause(s.ctx))
		}
	}
}
