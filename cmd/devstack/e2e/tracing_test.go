package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
	"github.com/tidemark-cdc/tidemark/internal/tracing/tracingtest"
)

// A streamer and a worker in two processes send what they do to a collector. An
// upload that is tried again, a workflow that somebody terminates, and a segment
// whose streamer is killed are one trace each.
func TestASegmentIsOneTraceOfAllProcesses(t *testing.T) {
	r := tracingtest.NewReceiver(t)
	h := harness.New(t, harness.Options{Postgres: 15, TemporalMemory: true, NoSetup: true,
		Settings: pipeline.Settings{"tracing.exporter": "otlp", "segment.max_age": "200ms"}})
	h.SQL(`create table diary (id int primary key, entry text)`)
	h.Pipeline.Env = append(h.Pipeline.Env, append(r.Environ(), "OTEL_BSP_SCHEDULE_DELAY=100")...)
	h.Setup()
	streamer := h.Streamer()
	h.Worker()
	streamer.WaitStreaming()
	h.WaitAck()

	// An upload that S3 turns down first.
	var retried harness.Upload
	h.Stack.Faults.Refuse(retried.Match, http.StatusForbidden, 1)
	h.SQL(`insert into diary values (1, 'one')`)
	h.WaitAck()
	first := h.Object(&retried).First.String()
	trace := waitTrace(t, h, r, first, "segment", "workflow")
	for _, path := range []string{
		"/segment", "/segment/dispatch", "/segment/workflow", "/segment/walk", "/segment/ack",
		"/segment/workflow/upload1!StoreDenied/store!StoreDenied", "/segment/workflow/upload2/look", "/segment/workflow/upload2/fetch", "/segment/workflow/upload2/encode", "/segment/workflow/upload2/store",
	} {
		if !slices.Contains(trace.paths, path) {
			t.Errorf("the trace of %s has no %s: %q", first, path, trace.paths)
		}
	}
	if !slices.Equal(trace.services, []string{"tidemark-streamer", "tidemark-worker"}) {
		t.Errorf("it is of %q", trace.services)
	}

	// Terminated while it is held, and started again.
	hold := h.Stack.Faults.Hold(stack.PutsOfSegments, 0)
	h.SQL(`insert into diary values (2, 'two')`)
	h.WaitHits(hold, 1)
	ref := streamer.Status().InFlight[0].Ref
	if err := dialTemporal(t, h).TerminateWorkflow(t.Context(), ref.WorkflowID(), "", "for a test"); err != nil {
		t.Fatal(err)
	}
	streamer.WaitLog("started again with the same boundary", harness.Bound)
	hold.Remove()
	h.WaitAck()
	trace = waitTrace(t, h, r, ref.First.String(), "segment", "workflow")
	for _, path := range []string{"/segment/workflow!terminated", "/segment/workflow"} {
		if !slices.Contains(trace.paths, path) {
			t.Errorf("the trace of %s, which was terminated, has no %s: %q", ref.First, path, trace.paths)
		}
	}

	// Killed while it is held, and adopted by the next streamer.
	hold = h.Stack.Faults.Hold(stack.PutsOfSegments, 0)
	h.SQL(`insert into diary values (3, 'three')`)
	h.WaitHits(hold, 1)
	ref = streamer.Status().InFlight[0].Ref
	streamer.Kill9()
	next := h.Streamer()
	next.WaitStreaming()
	next.WaitStatus(func(st harness.Status) string {
		if len(st.InFlight) == 0 {
			return "nothing is adopted"
		}
		return ""
	})
	hold.Remove()
	h.WaitAck()
	trace = waitTrace(t, h, r, ref.First.String(), "segment", "workflow")
	if got := trace.root.Attributes["tidemark.adopted"]; got != "open" {
		t.Errorf("the segment was adopted as %v", got)
	}
	for _, s := range trace.spans {
		if s.Name == "workflow" && s.From.Before(trace.root.From.Add(-time.Second)) {
			t.Errorf("the segment begins at %s, its workflow at %s", trace.root.From, s.From)
		}
	}
	sameTraceForEach(t, r)
}

// A collector that does not answer, and then none at all: rows come into the
// lake, and processes stop in time.
func TestAPipelineGoesOnWithoutItsCollector(t *testing.T) {
	r := tracingtest.NewReceiver(t)
	stuck := make(chan struct{})
	r.Answer = func(http.ResponseWriter, *http.Request) bool { <-stuck; return true }
	t.Cleanup(func() { close(stuck) })
	for name, environ := range map[string][]string{"it does not answer": r.Environ(), "nobody listens": {"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1"}} {
		t.Run(name, func(t *testing.T) {
			h := harness.New(t, harness.Options{Postgres: 15, TemporalMemory: true, NoSetup: true,
				Settings: pipeline.Settings{"tracing.exporter": "otlp", "segment.max_age": "200ms"}})
			h.SQL(`create table diary (id int primary key, entry text)`)
			h.Pipeline.Env = append(h.Pipeline.Env, append(environ, "OTEL_BSP_SCHEDULE_DELAY=100")...)
			h.Setup()
			p := h.Run()
			p.WaitStreaming()
			for i := range 20 {
				h.SQL(`insert into diary values ($1, 'x')`, i)
				h.WaitAck()
			}
			begun := time.Now()
			p.Stop()
			// Two seconds for the collector, and the rest for a busy machine.
			if took := time.Since(begun); took > 15*time.Second {
				t.Errorf("stopping took %s", took)
			}
			if !strings.Contains(p.Output(), "traces") || h.Logged("panic") > 0 {
				t.Errorf("the log says nothing of traces, or more than it should:\n%s", p.Tail(30))
			}
		})
	}
}

// trace is what a collector has of a segment.
type trace struct {
	root  tracingtest.Span
	spans []tracingtest.Span
	// paths are those of its spans from the root, services those that have sent
	// some, sorted.
	paths, services []string
}

// waitTrace waits until the spans of a segment that are named have come.
func waitTrace(t *testing.T, h *harness.Harness, r *tracingtest.Receiver, first string, names ...string) (found trace) {
	t.Helper()
	h.Eventually(harness.Bound, func() string {
		found = traceOf(r.Spans(), first)
		for _, name := range names {
			if !slices.ContainsFunc(found.spans, func(s tracingtest.Span) bool { return s.Name == name && s.Failed == "" }) {
				return fmt.Sprintf("segment %s has no span %s: %q", first, name, found.paths)
			}
		}
		return ""
	})
	return found
}

// traceOf puts together the trace that the segment which begins at first is in.
func traceOf(all []tracingtest.Span, first string) (of trace) {
	byID, id := map[string]tracingtest.Span{}, ""
	for _, s := range all {
		byID[s.ID] = s
		if s.Attributes["tidemark.segment"] == first {
			id = s.Trace
		}
	}
	for _, s := range all {
		if s.Trace != id {
			continue
		}
		if s.Parent == "" {
			of.root = s
		}
		of.spans = append(of.spans, s)
		of.services = append(of.services, s.Resource["service.name"].(string))
		path := ""
		for ok := true; ok; s, ok = byID[s.Parent] {
			name := s.Name
			if n, ok := s.Attributes["tidemark.attempt"]; ok {
				name += fmt.Sprint(n)
			}
			if s.Failed != "" {
				name += "!" + s.Failed
			}
			path = "/" + name + path
		}
		of.paths = append(of.paths, path)
	}
	slices.Sort(of.paths)
	slices.Sort(of.services)
	of.services = slices.Compact(of.services)
	return of
}

// sameTraceForEach checks that all spans about a segment are in one trace, and
// that each trace is of one segment.
func sameTraceForEach(t *testing.T, r *tracingtest.Receiver) {
	t.Helper()
	traces, segments := map[any]string{}, map[string]any{}
	for _, s := range r.Spans() {
		of, ok := s.Attributes["tidemark.segment"]
		if !ok {
			continue
		}
		if seen, ok := traces[of]; ok && seen != s.Trace {
			t.Errorf("segment %s is in the traces %s and %s", of, seen, s.Trace)
		}
		if seen, ok := segments[s.Trace]; ok && seen != of {
			t.Errorf("trace %s is of the segments %s and %s", s.Trace, seen, of)
		}
		traces[of], segments[s.Trace] = s.Trace, of
	}
	if len(traces) < 3 {
		t.Errorf("%d segments were traced", len(traces))
	}
}
