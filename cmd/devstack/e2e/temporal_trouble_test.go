package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/tally"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// temporalOutage is how long Temporal is away: several times wal_sender_timeout.
const temporalOutage = time.Minute

// What can happen to Temporal while a pipeline runs, one after the other on one
// lake: it is away; an operator terminates, cancels and deletes workflows; it has
// forgotten all of them while nobody streamed; its namespace is deleted.
//
// On one version of Postgres: nothing here has to do with it.
func TestWhateverHappensToTemporalNothingIsLostOrDoubled(t *testing.T) {
	t.Parallel()
	h := harness.New(t, harness.Options{
		Postgres:         15,
		PostgresSettings: map[string]string{"wal_sender_timeout": "3s"},
		Settings:         pipeline.Settings{"segment.max_rows": 100, "segment.max_age": "100ms"},
	})
	s := &troubled{t: t, h: h, want: tally.Counts{}}
	s.p = h.Run()
	s.p.WaitStreaming()
	s.c = dialTemporal(t, h)
	s.insert()
	h.WaitAck()

	s.outage()
	s.ended("closed", "was closed before it completed", func(ctx context.Context, id string) error {
		return s.c.TerminateWorkflow(ctx, id, "", "a test")
	})
	s.ended("closed", "was closed before it completed", func(ctx context.Context, id string) error {
		return s.c.CancelWorkflow(ctx, id, "")
	})
	s.ended("forgotten", "Do not delete workflows, terminate them", s.delete)
	s.forgotten()
	s.namespaceGone()
	h.LakeHas(s.want)
	h.SameAsPostgres("public.events")
}

// troubled is a pipeline whose Temporal is in trouble.
type troubled struct {
	t    *testing.T
	h    *harness.Harness
	p    *harness.Proc
	c    client.Client
	want tally.Counts
	rows int64
}

// insert commits two transactions of 30 rows.
func (s *troubled) insert() {
	s.t.Helper()
	for range 2 {
		s.h.SQL(`insert into public.events select i, 'a', 'row ' || i from generate_series($1::bigint, $1::bigint + 29) i`, s.rows)
		s.rows += 30
		s.want[tally.Kind{Table: "public.events", Operation: "insert"}] += 30
	}
}

// arrives waits until everything committed is in the lake, once.
func (s *troubled) arrives(after string) {
	s.t.Helper()
	s.h.WaitAck()
	if lines := s.h.Missing(s.want); len(lines) > 0 {
		s.t.Fatalf("after %s: rows in the lake differ from rows committed: %v", after, lines)
	}
}

// outage stops Temporal for several times wal_sender_timeout.
func (s *troubled) outage() {
	s.t.Helper()
	walsender := s.h.Walsender()
	if err := s.h.Stack.Temporal.Stop(); err != nil {
		s.t.Fatal(err)
	}
	over := time.Now().Add(temporalOutage)
	s.insert()
	s.p.WaitLog("Temporal is unreachable", harness.Bound)
	if status := s.get("/readyz"); !strings.Contains(status, "Temporal cannot be reached") {
		s.t.Errorf("readyz says during an outage of Temporal: %s", status)
	}
	if n := s.metric(`tidemark_temporal_outage_seconds{pipeline="e2e"}`); n <= 0 {
		s.t.Errorf("the metric of the outage stands at %v", n)
	}
	s.h.Eventually(temporalOutage+harness.Bound, func() string {
		if left := time.Until(over); left > 0 {
			return fmt.Sprintf("the outage goes on for %s", left)
		}
		return ""
	})
	if err := s.h.Stack.Temporal.Start(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.arrives("an outage of Temporal")
	if now := s.h.Walsender(); now != walsender {
		s.t.Errorf("the walsender was process %d and is %d after an outage of Temporal", walsender, now)
	}
	s.p.WaitLog("Temporal answers again", harness.Bound)
	if n := s.metric(`tidemark_temporal_outage_seconds{pipeline="e2e"}`); n != 0 {
		s.t.Errorf("the metric of the outage stands at %v after it", n)
	}
}

// ended has an operator end the workflow of a segment whose upload is held.
func (s *troubled) ended(ending, says string, end func(context.Context, string) error) {
	s.t.Helper()
	series := fmt.Sprintf(`tidemark_segments_restarted_total{ending=%q,pipeline="e2e"}`, ending)
	before, told := s.metric(series), s.h.Logged(says)
	var u harness.Upload
	held := s.h.Stack.Faults.Hold(u.Match, 0)
	s.insert()
	s.h.WaitHits(held, 1)
	id := segment.WorkflowID("e2e", s.h.Object(&u).First)
	if err := end(s.t.Context(), id); err != nil {
		s.t.Fatal(err)
	}
	s.h.Eventually(harness.Bound, func() string {
		if s.h.Logged(says) == told {
			return fmt.Sprintf("the streamer does not say %q", says)
		}
		return ""
	})
	held.Remove()
	s.arrives("a workflow that was " + ending)
	if n := s.metric(series); n != before+1 {
		s.t.Errorf("%s stood at %v and stands at %v", series, before, n)
	}
}

// delete deletes a workflow and waits until Temporal does not know it.
func (s *troubled) delete(ctx context.Context, id string) error {
	_, err := s.c.WorkflowService().DeleteWorkflowExecution(ctx, &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace: s.h.Stack.Temporal.Namespace(), WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id},
	})
	return err
}

// forgotten has Temporal forget every workflow while nobody streams, as it does
// when its retention has passed, those of objects too that are not on record.
func (s *troubled) forgotten() {
	s.t.Helper()
	ctx := s.t.Context()
	unrecorded := s.h.Stack.Faults.Refuse(stack.Puts("/_tidemark/ack.json"), http.StatusServiceUnavailable, 0)
	before := len(s.h.Objects())
	s.insert()
	s.h.WaitObjects(before + 1)
	s.h.Eventually(harness.Bound, func() string { return strings.Join(s.h.Missing(s.want), "; ") })
	s.p.Kill9()
	objects := s.h.Objects()
	for _, o := range objects {
		id := segment.WorkflowID("e2e", o.First)
		if err := s.delete(ctx, id); err != nil && !isNotFound(err) {
			s.t.Fatal(err)
		}
	}
	s.h.Eventually(harness.Bound, func() string {
		for _, o := range objects {
			id := segment.WorkflowID("e2e", o.First)
			if _, err := s.c.DescribeWorkflowExecution(ctx, id, ""); !isNotFound(err) {
				return fmt.Sprintf("Temporal still knows %s (%v)", id, err)
			}
		}
		return ""
	})
	unrecorded.Remove()
	s.p = s.h.Run()
	s.arrives("all of Temporal's memory was gone")
	s.p.WaitLog("adopting a segment from the lake", harness.Bound)
	if got := len(s.h.Objects()); got != len(objects) {
		s.t.Errorf("the lake had %d objects and has %d", len(objects), got)
	}
}

func isNotFound(err error) bool {
	var gone *serviceerror.NotFound
	return errors.As(err, &gone)
}

// namespaceGone deletes the namespace under a running pipeline, which stops and
// is refused until it is there again.
func (s *troubled) namespaceGone() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), harness.Bound)
	defer cancel()
	name := s.h.Stack.Temporal.Namespace()
	if _, err := s.c.OperatorService().DeleteNamespace(ctx, &operatorservice.DeleteNamespaceRequest{Namespace: name}); err != nil {
		s.t.Fatal(err)
	}
	s.insert()
	s.h.Within(harness.Bound, "a pipeline whose namespace is gone", s.p.Done())
	ended(s.t, s.p, 1)
	create := "temporal operator namespace create --namespace " + name
	if !strings.Contains(s.p.Output(), create) {
		s.t.Errorf("the end of the log does not say %q:\n%s", create, s.p.Tail(5))
	}
	if r := s.h.Verb("run", "--ops-listen=off"); r.Code != 2 || !strings.Contains(r.Stderr, "Temporal has no namespace") || !strings.Contains(r.Stderr, create) {
		s.t.Errorf("without the namespace a start ends with status %d:\n%s", r.Code, r.Stderr)
	}
	_, err := s.c.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: name, WorkflowExecutionRetentionPeriod: durationpb.New(stack.Retention),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.h.Eventually(harness.Bound, func() string {
		if r := s.h.Verb("setup"); r.Code != 0 {
			return "setup: " + r.Stderr
		}
		return ""
	})
	s.p = s.h.Run()
	s.arrives("its namespace was deleted and made again")
}

// get is what the process' page says.
func (s *troubled) get(path string) string {
	s.t.Helper()
	resp, err := http.Get("http://" + s.p.Ops + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.Status + "\n" + string(body)
}

// metric is the value of one series of the process, 0 if there is none.
func (s *troubled) metric(series string) (v float64) {
	s.t.Helper()
	for line := range strings.Lines(s.get("/metrics")) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			if _, err := fmt.Sscan(value, &v); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	return v
}
