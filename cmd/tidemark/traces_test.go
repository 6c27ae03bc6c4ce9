package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/tidemark-cdc/tidemark/activities"
	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/config"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/internal/segment/segmenttest"
	"github.com/tidemark-cdc/tidemark/internal/tracing/tracingtest"
	"github.com/tidemark-cdc/tidemark/internal/tracker"
	"github.com/tidemark-cdc/tidemark/internal/tracker/trackertest"
	"github.com/tidemark-cdc/tidemark/streamer"
	"github.com/tidemark-cdc/tidemark/worker"
	"github.com/tidemark-cdc/tidemark/workflows"
)

var quiet = slog.New(slog.DiscardHandler)

// traced makes the traces of a process that sends them to r.
func traced(t *testing.T, r *tracingtest.Receiver, of roles, environ ...string) *traces {
	t.Helper()
	c := &config.Config{Pipeline: "orders", Tracing: config.Tracing{Exporter: config.TracingOTLP}}
	tr, err := newTraces(t.Context(), c, append(r.Environ(), environ...), of, of.String()+"-1", quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.close)
	return tr
}

// secretRow is in a row.
const secretRow = "row-data-of-a-customer"

// oneRow is a segment of one row that can be decoded, and its source.
func oneRow(l *lake.Lake) (segment.Ref, segment.Source) {
	rel := &change.Relation{OID: 16384, Hash: 7, Namespace: "public", Name: "orders", Identity: 'd', Columns: []change.Column{{Name: "id", Type: 25, Modifier: -1, Key: true}}}
	raw := []byte{'I', 0, 0, 0x40, 0, 'N', 0, 1, 't', 0, 0, 0, byte(len(secretRow))}
	cs := []change.Change{{
		Position: change.Position{Timeline: 1, LSN: 0x16B3748}, LSN: 0x16B3700, CommitTime: change.Time(20000 * 24 * 3600 * 1e6), Received: 1,
		Relation: rel, Raw: append(raw, secretRow...), XID: 700, Operation: change.Insert,
	}}
	ref := segmenttest.RefOf(change.JustBefore(1, 0x80), cs)
	ref.Pipeline, ref.Lake = "orders", l.URL()
	return ref, segmenttest.NewMemory(segmenttest.Segment{Ref: ref, Changes: cs})
}

// failing is a store whose first puts fail.
type failing struct {
	*lake.Memory
	puts atomic.Int32
}

func (f *failing) Put(ctx context.Context, key string, body []byte, cond lake.Condition) (string, error) {
	if f.puts.Add(1) == 1 {
		return "", &lake.Error{Op: "write", Object: key, Kind: lake.Unavailable, Err: fmt.Errorf("no answer to %s", secretRow)}
	}
	return f.Memory.Put(ctx, key, body, cond)
}

// started is the header that a process starts the workflow of a segment with.
func started(t *testing.T, tr *traces, ref segment.Ref) *commonpb.Header {
	t.Helper()
	f := trackertest.NewFrontend(t, &trackertest.Frontend{})
	c, err := client.Dial(client.Options{HostPort: f.Address(), Namespace: trackertest.Namespace, Logger: worker.ClientLogger(quiet), Interceptors: tr.interceptors()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tk := tracker.New(c, tracker.Config{TaskQueue: "q", Namespace: trackertest.Namespace, Logger: quiet})
	if _, err := tk.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := tk.Start(t.Context(), ref, segment.Location{Instance: "a"}); err != nil {
		t.Fatal(err)
	}
	return f.Started(ref.WorkflowID()).GetHeader()
}

// upload runs the workflow of a segment, and its activities, as a worker does.
func upload(t *testing.T, tr *traces, header *commonpb.Header, l *lake.Lake, ref segment.Ref, source segment.Source) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(worker.ClientLogger(quiet))
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute)
	var list []interceptor.WorkerInterceptor
	for _, i := range tr.interceptors() {
		list = append(list, i.(interceptor.WorkerInterceptor))
	}
	env.SetWorkerOptions(sdkworker.Options{Interceptors: list})
	env.SetHeader(header)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: ref.WorkflowID()})
	worker.Register(env, &activities.Activities{
		Source: func(segment.Location) (segment.Source, error) { return source, nil }, Lake: l, Logger: quiet, Tracer: tr.ofWorker(),
	})
	env.ExecuteWorkflow(workflows.SegmentName, workflows.SegmentInput{Version: workflows.Version, Ref: ref, Source: segment.Location{Instance: "a"}})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
}

// tree gives the paths of spans from their roots, and those whose parent has not
// come, sorted.
func tree(spans []tracingtest.Span) []string {
	byID := map[string]tracingtest.Span{}
	for _, s := range spans {
		byID[s.ID] = s
	}
	var paths []string
	for _, s := range spans {
		path := ""
		for {
			name := s.Name
			if n, ok := s.Attributes["tidemark.attempt"]; ok {
				name += fmt.Sprint(n)
			}
			if s.Failed != "" {
				name += "!" + s.Failed
			}
			path = "/" + name + path
			parent, ok := byID[s.Parent]
			if !ok {
				if s.Parent != "" {
					path = "?" + path
				}
				break
			}
			s = parent
		}
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

func TestASegmentIsOneTraceOfAllWhoHaveToDoWithIt(t *testing.T) {
	r := tracingtest.NewReceiver(t)
	reads, works := traced(t, r, roles{streamer: true}), traced(t, r, roles{worker: true})
	l := lake.New("s3://bucket/lake", &failing{Memory: lake.NewMemory()})
	ref, source := oneRow(l)

	header := started(t, reads, ref)
	upload(t, works, header, l, ref, source)
	at := time.Now()
	for _, name := range []streamer.StepName{streamer.StepDispatch, streamer.StepWalk, streamer.StepAck, streamer.StepSegment} {
		reads.ofStreamer().Traced(streamer.Step{Name: name, Ref: ref, From: at, To: at, Adopted: streamer.AdoptedOpen})
	}
	reads.ofStreamer().Traced(streamer.Step{Name: streamer.StepRun, Ref: ref, From: at, To: at, Run: "another run", Ended: "terminated"})
	reads.close()
	works.close()

	spans := r.Spans()
	want := []string{
		"/segment", "/segment/ack", "/segment/dispatch", "/segment/walk", "/segment/workflow", "/segment/workflow!terminated",
		"/segment/workflow/upload1!StoreUnavailable",
		"/segment/workflow/upload1!StoreUnavailable/encode", "/segment/workflow/upload1!StoreUnavailable/fetch", "/segment/workflow/upload1!StoreUnavailable/store!StoreUnavailable",
		"/segment/workflow/upload2",
		"/segment/workflow/upload2/encode", "/segment/workflow/upload2/fetch", "/segment/workflow/upload2/look", "/segment/workflow/upload2/store",
	}
	if got := tree(spans); !slices.Equal(got, want) {
		t.Errorf("the tree is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	about := map[string]any{
		"tidemark.pipeline": "orders", "tidemark.segment": ref.First.String(), "tidemark.first_lsn": "0/16B3748", "tidemark.last_lsn": "0/16B3748",
		"tidemark.rows": int64(1), "tidemark.bytes": ref.Bytes, "tidemark.tables": int64(ref.TableCount),
	}
	for _, s := range spans {
		if s.Trace != spans[0].Trace {
			t.Errorf("%s is in another trace", s.Name)
		}
		service := "tidemark-streamer"
		switch s.Name {
		case "segment", "dispatch", "walk", "ack":
			check(t, s, about)
			check(t, s, map[string]any{"tidemark.adopted": "open"})
		case "workflow":
			check(t, s, about)
			check(t, s, map[string]any{"temporalWorkflowID": ref.WorkflowID()})
			if s.Failed == "" {
				service = "tidemark-worker"
			}
		case "upload":
			service = "tidemark-worker"
			check(t, s, about)
			check(t, s, map[string]any{"temporalRunID": "default-test-run-id"})
			if s.Failed == "" {
				check(t, s, map[string]any{"tidemark.objects": int64(1), "tidemark.existed": false, "tidemark.quarantined": false})
			} else {
				check(t, s, map[string]any{"error.type": "StoreUnavailable"})
			}
		case "store":
			service = "tidemark-worker"
			if key, _ := s.Attributes["tidemark.object"].(string); s.Failed == "" && !strings.HasSuffix(key, ".parquet") {
				t.Errorf("the object is %q", key)
			}
		default:
			service = "tidemark-worker"
			check(t, s, map[string]any{"tidemark.pipeline": "orders"})
		}
		if s.Resource["service.name"] != service || s.Resource["service.instance.id"] == "" || s.Resource["service.version"] == "" {
			t.Errorf("%s is of %v, want %s", s.Name, s.Resource, service)
		}
		if text := fmt.Sprintf("%+v", s); strings.Contains(text, secretRow) {
			t.Errorf("a span has row data: %s", text)
		}
	}
}

func check(t *testing.T, s tracingtest.Span, want map[string]any) {
	t.Helper()
	for key, v := range want {
		if s.Attributes[key] != v {
			t.Errorf("%s of %s is %v, want %v", key, s.Name, s.Attributes[key], v)
		}
	}
}

func TestAWorkerTracesWhatTheStreamerDoes(t *testing.T) {
	for name, tc := range map[string]struct {
		streamer *roles
		environ  []string
		want     []string
	}{
		"a streamer that traces nothing":         {nil, nil, nil},
		"a streamer whose sampler leaves it out": {&roles{streamer: true}, []string{"OTEL_TRACES_SAMPLER=always_off"}, nil},
		"a streamer whose spans have not come": {&roles{streamer: true}, nil,
			[]string{"?/workflow", "?/workflow/upload1", "?/workflow/upload1/encode", "?/workflow/upload1/fetch", "?/workflow/upload1/store"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := tracingtest.NewReceiver(t)
			works := traced(t, r, roles{worker: true})
			l := lake.New("s3://bucket/lake", lake.NewMemory())
			ref, source := oneRow(l)
			var reads *traces
			if tc.streamer != nil {
				reads = traced(t, r, *tc.streamer, tc.environ...)
			}
			upload(t, works, started(t, reads, ref), l, ref, source)
			works.close()
			if got := tree(r.Spans()); !slices.Equal(got, tc.want) {
				t.Errorf("sent are %q, want %q", got, tc.want)
			}
		})
	}
}

// recorded reads a history of package workflows' tests.
func recorded(t *testing.T, path string) *historypb.History {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	history, err := client.HistoryFromJSON(bytes.NewReader(text), client.HistoryJSONOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return history
}

func TestRunsThatBeganWithoutTracingGoOnWithIt(t *testing.T) {
	histories, err := filepath.Glob(filepath.Join("..", "..", "workflows", "testdata", "*.json"))
	if err != nil || len(histories) < 16 {
		t.Fatalf("found %d recorded histories, %v", len(histories), err)
	}
	r := tracingtest.NewReceiver(t)
	works := traced(t, r, roles{worker: true})
	ref, _ := oneRow(lake.New("s3://bucket/lake", lake.NewMemory()))
	header := started(t, works, ref)
	for _, path := range histories {
		for name, header := range map[string]*commonpb.Header{"": nil, ", with a trace": header} {
			t.Run(strings.TrimSuffix(filepath.Base(path), ".json")+name, func(t *testing.T) {
				replayer, err := sdkworker.NewWorkflowReplayerWithOptions(sdkworker.WorkflowReplayerOptions{
					Interceptors: []interceptor.WorkerInterceptor{works.interceptors()[0].(interceptor.WorkerInterceptor)},
				})
				if err != nil {
					t.Fatal(err)
				}
				replayer.RegisterWorkflowWithOptions(workflows.Segment, workflow.RegisterOptions{Name: workflows.SegmentName})
				replayer.RegisterWorkflowWithOptions(workflows.Replay, workflow.RegisterOptions{Name: workflows.ReplayName})
				history := recorded(t, path)
				if header != nil {
					history.Events[0].GetWorkflowExecutionStartedEventAttributes().Header = header
				}
				if err := replayer.ReplayWorkflowHistory(worker.ClientLogger(quiet), history); err != nil {
					t.Error(err)
				}
			})
		}
	}
	works.close()
	if got := r.Spans(); len(got) > 0 {
		t.Errorf("replays have sent %q", tree(got))
	}
}

func TestTracingIsOffUnlessItIsAskedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		exporter string
		environ  []string
	}{
		"by default":            {"", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1"}},
		"as it is set":          {"off", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=no address"}},
		"as OpenTelemetry's is": {config.TracingOTLP, []string{"OTEL_SDK_DISABLED=true"}},
	} {
		t.Run(name, func(t *testing.T) {
			tr, err := newTraces(t.Context(), &config.Config{Tracing: config.Tracing{Exporter: tc.exporter}}, tc.environ, roles{worker: true}, "i", quiet)
			if err != nil || tr != nil {
				t.Fatalf("made are %v, %v", tr, err)
			}
			if tr.interceptors() != nil || tr.ofStreamer() != nil || tr.ofWorker() != nil {
				t.Error("somebody is told of something")
			}
			tr.close()
		})
	}
}

func TestWhatIsWrongWithTracingIsRefusedWithAllElse(t *testing.T) {
	bad := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318", "OTEL_EXPORTER_OTLP_HEADERS=hunter2", "TIDEMARK_LOG_LEVEL=loud"}
	for _, verb := range []string{"config", "run", "streamer", "worker"} {
		got := run(t, append(bad, "TIDEMARK_TRACING_EXPORTER=otlp"), verb)
		if got.status != statusRefused {
			t.Errorf("%s ends with status %d", verb, got.status)
		}
		has(t, verb, got.err, "reasons", "log.level (TIDEMARK_LOG_LEVEL)", "OTEL_EXPORTER_OTLP_ENDPOINT: want a URL", "OTEL_EXPORTER_OTLP_HEADERS: its entry 1")
		if strings.Contains(got.out+got.err, "hunter2") {
			t.Errorf("%s shows a header", verb)
		}
	}
	got := run(t, bad[:1], "config", "--tracing-exporter=otlp")
	if got.status != statusRefused || strings.Count(got.err, "\n") != 1 {
		t.Errorf("a single problem is told as %+v", got)
	}
	// Nobody is concerned where tracing is off.
	if got := run(t, bad[:2], "config"); got.status != statusDone {
		t.Errorf("without tracing: %+v", got)
	}
	good := []string{"OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20hunter2", "TIDEMARK_TRACING_EXPORTER=otlp"}
	for _, args := range [][]string{{"config"}, {"config", "--json"}} {
		if got := run(t, good, args...); got.status != statusDone || strings.Contains(got.out+got.err, "hunter2") || !strings.Contains(got.out, "tracing.exporter") {
			t.Errorf("%q: %+v", args, got)
		}
	}
}
