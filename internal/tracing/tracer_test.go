package tracing

import (
	"bytes"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/internal/tracing/tracingtest"
)

func testRef() segment.Ref {
	return segment.Ref{
		Pipeline: "orders", SystemID: "7300000000000000001", Lake: "s3://bucket/lake",
		First: change.Position{Timeline: 1, LSN: 0x16B3748}, Last: change.Position{Timeline: 1, LSN: 0x16B9000, Ordinal: 4},
	}
}

// start makes a Tracer of the environment's, which has to be right.
func start(t *testing.T, logger *slog.Logger, environ ...string) *Tracer {
	t.Helper()
	settings, problems := FromEnviron(environ)
	if len(problems) > 0 {
		t.Fatalf("refused: %q", problems)
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	tracer, err := New(t.Context(), Config{Settings: settings, Service: "tidemark-worker", Version: "v1", Instance: "host-1", Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tracer.Close)
	return tracer
}

func TestSpansComeToACollectorAsTheyWereTold(t *testing.T) {
	for name, receive := range map[string]func(testing.TB) *tracingtest.Receiver{
		"over HTTP": tracingtest.NewReceiver, "over gRPC": tracingtest.NewGRPCReceiver,
	} {
		for _, compression := range []string{"none", "gzip"} {
			t.Run(name+", "+compression, func(t *testing.T) {
				r := receive(t)
				tracer := start(t, nil, append(r.Environ(), "OTEL_EXPORTER_OTLP_COMPRESSION="+compression,
					"OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20hush,x-team=a%2Cb", "OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test%20bed,service.version=mine")...)
				from := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
				root := tracer.Root(testRef())
				below := tracer.Emit(Span{Name: "encode", Parent: root, From: from, To: from.Add(time.Second),
					Attributes: []slog.Attr{slog.Int64("tidemark.rows", 7), slog.String("tidemark.pipeline", "orders"), slog.Bool("tidemark.existed", true)}, Failed: "RowTooLarge"})
				tracer.Emit(Span{Name: "segment", Self: root, From: from, To: from.Add(-time.Hour)})
				tracer.Close()

				spans := r.Spans()
				if len(spans) != 2 {
					t.Fatalf("%d spans have come: %+v", len(spans), spans)
				}
				encode, whole := spans[0], spans[1]
				if whole.Name != "segment" || whole.Parent != "" || !whole.From.Equal(from) || !whole.To.Equal(from) || whole.Failed != "" {
					t.Errorf("the root is %+v", whole)
				}
				if encode.Name != "encode" || encode.Trace != whole.Trace || encode.Parent != whole.ID || encode.ID == whole.ID ||
					!encode.From.Equal(from) || encode.To.Sub(encode.From) != time.Second || encode.Failed != "RowTooLarge" {
					t.Errorf("below it is %+v", encode)
				}
				if want := "00-" + encode.Trace + "-" + encode.ID + "-01"; below.String() != want {
					t.Errorf("it is known as %s, want %s", below, want)
				}
				for key, want := range map[string]any{"tidemark.rows": int64(7), "tidemark.pipeline": "orders", "tidemark.existed": true, "error.type": "RowTooLarge"} {
					if encode.Attributes[key] != want {
						t.Errorf("%s is %v, want %v", key, encode.Attributes[key], want)
					}
				}
				for key, want := range map[string]any{
					"service.name": "tidemark-worker", "service.instance.id": "host-1", "service.version": "mine",
					"deployment.environment.name": "test bed", "telemetry.sdk.language": "go",
				} {
					if encode.Resource[key] != want {
						t.Errorf("of the process, %s is %v, want %v", key, encode.Resource[key], want)
					}
				}
				headers, paths := r.Requests()
				if headers[0]["Authorization"] != "Bearer hush" || headers[0]["X-Team"] != "a,b" {
					t.Errorf("the collector is shown %q", headers[0])
				}
				if paths[0] != "" && paths[0] != "/v1/traces" {
					t.Errorf("sent to %s", paths[0])
				}
			})
		}
	}
}

func TestEveryoneFindsTheTraceOfASegmentByItself(t *testing.T) {
	one, other := start(t, nil), start(t, nil)
	root := one.Root(testRef())
	if again := other.Root(testRef()); again != root {
		t.Errorf("two processes have %s and %s", root, again)
	}
	// What is only known once the boundary is does not count.
	adopted := testRef()
	adopted.Last, adopted.Rows, adopted.Digest = change.Position{Timeline: 1, LSN: 0x16BF000}, 9, 4
	if one.Root(adopted) != root {
		t.Error("another boundary is another trace")
	}
	for name, change := range map[string]func(*segment.Ref){
		"pipeline": func(r *segment.Ref) { r.Pipeline = "other" },
		"system":   func(r *segment.Ref) { r.SystemID = "7300000000000000002" },
		"lake":     func(r *segment.Ref) { r.Lake = "s3://bucket/copy" },
		"position": func(r *segment.Ref) { r.First.Ordinal = 1 },
	} {
		ref := testRef()
		change(&ref)
		if one.Root(ref).trace == root.trace {
			t.Errorf("another %s is the same trace", name)
		}
	}
	run := root.Below("run-1")
	if run.trace != root.trace || run.span == root.span || run != root.Below("run-1") || run == root.Below("run-2") {
		t.Errorf("below %s stand %s and %s", root, run, root.Below("run-2"))
	}
}

func TestANodeTravelsAsText(t *testing.T) {
	root := start(t, nil).Root(testRef())
	got, err := ParseNode(root.String())
	if err != nil || got != root {
		t.Errorf("%s is read as %s, %v", root, got, err)
	}
	for _, text := range []string{"", "00", "00-00000000000000000000000000000000-0000000000000000-01", root.String()[:50]} {
		if got, err := ParseNode(text); err == nil {
			t.Errorf("%q is read as %s", text, got)
		}
	}
}

func TestTheSamplerDecidesWhereATraceBeginsAndIsObeyedElsewhere(t *testing.T) {
	r := tracingtest.NewReceiver(t)
	never := start(t, nil, append(r.Environ(), "OTEL_TRACES_SAMPLER=parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG=0")...)
	always := start(t, nil, r.Environ()...)
	for name, tracer := range map[string]*Tracer{"as it said itself": never, "as another one said": always} {
		root := never.Root(testRef())
		if !strings.HasSuffix(root.String(), "-00") {
			t.Fatalf("the root is %s", root)
		}
		tracer.Emit(Span{Name: name, Parent: root})
	}
	never.Emit(Span{Name: "the root", Self: never.Root(testRef())})
	never.Emit(Span{Name: "of a trace that is sampled", Parent: always.Root(testRef())})
	never.Close()
	always.Close()
	if spans := r.Spans(); len(spans) != 1 || spans[0].Name != "of a trace that is sampled" {
		t.Errorf("sent are %+v", spans)
	}

	// A share of the traces, and the same ones in every process.
	some := []string{"OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG=0.25"}
	one, other := start(t, nil, some...), start(t, nil, some...)
	sampled := 0
	for i := range 4000 {
		ref := testRef()
		ref.First.LSN += change.LSN(i)
		if one.Root(ref) != other.Root(ref) {
			t.Fatalf("two processes do not agree on %s", ref.First)
		}
		if one.Root(ref).sampled {
			sampled++
		}
	}
	if sampled < 800 || sampled > 1200 {
		t.Errorf("%d of 4000 are sampled, want a quarter", sampled)
	}
}

// lines collects what is logged.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// with gives the lines that have a part.
func (l *lines) with(part string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, part) {
			found = append(found, line)
		}
	}
	return found
}

// never is a collector that takes connections and does not answer.
func never(t *testing.T) (environ []string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + listener.Addr().String()}
}

func TestACollectorThatDoesNotAnswerHoldsNobodyUp(t *testing.T) {
	for _, protocol := range []string{"grpc", "http/protobuf"} {
		t.Run(protocol, func(t *testing.T) {
			var log lines
			tracer := start(t, slog.New(slog.NewTextHandler(&log, nil)), append(never(t), "OTEL_EXPORTER_OTLP_PROTOCOL="+protocol)...)
			root := tracer.Root(testRef())
			const spans = 3 * maxWaiting
			begun := time.Now()
			for range spans {
				tracer.Emit(Span{Name: "walk", Parent: root})
			}
			// On a busy machine, far below what a single request may take.
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("emitting took %s", took)
			}
			if waiting := tracer.queue.out.waiting.Load(); waiting > maxWaiting {
				t.Errorf("%d spans wait, want %d at most", waiting, maxWaiting)
			}
			begun = time.Now()
			tracer.Close()
			if took := time.Since(begun); took > flushBound+5*time.Second {
				t.Errorf("closing took %s", took)
			}
			if left := tracer.queue.out.waiting.Load(); left != 0 {
				t.Errorf("%d spans are not accounted for", left)
			}
			if got := log.with("stopping without having delivered"); len(got) != 1 || !strings.Contains(got[0], "spans_lost=6144") {
				t.Errorf("what is lost is told as %q", got)
			}
		})
	}
}

func TestAnOutageOfTheCollectorIsToldOnceAndWithoutSecrets(t *testing.T) {
	var log lines
	r := tracingtest.NewReceiver(t)
	refusing := true
	r.Answer = func(w http.ResponseWriter, req *http.Request) bool {
		if refusing {
			_, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
			http.Error(w, "I do not know "+req.Header.Get("Authorization")+" nor "+token, http.StatusForbidden)
		}
		return refusing
	}
	tracer := start(t, slog.New(slog.NewTextHandler(&log, nil)), append(r.Environ(), "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20hunter2")...)
	flush := func() {
		t.Helper()
		tracer.Emit(Span{Name: "walk", Parent: tracer.Root(testRef())})
		if err := tracer.provider.ForceFlush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		flush()
	}
	if got := log.with("traces are not delivered"); len(got) != 1 || !strings.Contains(got[0], "403 Forbidden") || !strings.Contains(got[0], "I do not know xxxxx nor xxxxx") {
		t.Errorf("the outage is told as %q", got)
	}
	refusing = false
	flush()
	if got := log.with("traces are delivered again"); len(got) != 1 || !strings.Contains(got[0], "spans_lost=5") {
		t.Errorf("its end is told as %q", got)
	}
	if got := log.with("hunter2"); len(got) > 0 {
		t.Errorf("a header is shown: %q", got)
	}
	tracer.Close()
	if got := log.with("stopping without"); len(got) > 0 {
		t.Errorf("nothing was lost since: %q", got)
	}
}

func TestAnOutageIsRemindedOf(t *testing.T) {
	var log lines
	o := outage{log: slog.New(slog.NewTextHandler(&log, nil))}
	now := time.Now()
	for range 60 {
		o.note(net.ErrClosed, 1, now)
		now = now.Add(time.Minute)
	}
	if got := log.with("traces are not delivered"); len(got) != 6 || !strings.Contains(got[5], "spans_lost=51") {
		t.Errorf("an hour is told as %q", got)
	}
	o.note(nil, 0, now)
	if got := log.with("delivered again"); len(got) != 1 || !strings.Contains(got[0], "spans_lost=60") {
		t.Errorf("its end is told as %q", got)
	}
	o.note(nil, 2, now)
	if got := log.with("traces are not delivered"); len(got) != 7 || !strings.Contains(got[6], "more spans than the collector takes") {
		t.Errorf("a queue that runs over is told as %q", got)
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	var log lines
	elsewhere, r := tracingtest.NewReceiver(t), tracingtest.NewReceiver(t)
	to := strings.TrimPrefix(elsewhere.Environ()[1], "OTEL_EXPORTER_OTLP_ENDPOINT=")
	r.Answer = func(w http.ResponseWriter, req *http.Request) bool {
		http.Redirect(w, req, to+"/v1/traces", http.StatusTemporaryRedirect)
		return true
	}
	tracer := start(t, slog.New(slog.NewTextHandler(&log, nil)), append(r.Environ(), "OTEL_EXPORTER_OTLP_HEADERS=x-api-key=hush")...)
	tracer.Emit(Span{Name: "walk", Parent: tracer.Root(testRef())})
	tracer.Close()
	if headers, _ := elsewhere.Requests(); len(headers) > 0 || len(log.with("307")) != 1 {
		t.Errorf("headers went on as %q; logged is %q", headers, log.with("traces"))
	}
}

func TestAttributesOfOtherKindsAreTexts(t *testing.T) {
	r := tracingtest.NewReceiver(t)
	tracer := start(t, nil, r.Environ()...)
	tracer.Emit(Span{Name: "x", Parent: tracer.Root(testRef()), Attributes: []slog.Attr{slog.Any("lsn", change.LSN(0x16B3748)), slog.Duration("d", time.Second)}})
	tracer.Close()
	if got := r.Spans()[0].Attributes; got["lsn"] != "0/16B3748" || got["d"] != "1s" {
		t.Errorf("got %v", got)
	}
}

func TestTheEnvironmentIsReadAsOpenTelemetrySpecifiesIt(t *testing.T) {
	for name, tc := range map[string]struct {
		environ []string
		want    func(Settings) bool
	}{
		"the defaults": {nil, func(s Settings) bool {
			return !s.grpc && s.address == "localhost:4318" && s.path == "/v1/traces" && s.insecure && s.tls == nil && s.timeout == 10*time.Second && !s.gzip && !s.Disabled &&
				strings.HasPrefix(s.sampler.Description(), "ParentBased{root:AlwaysOnSampler")
		}},
		"gRPC by default": {[]string{"OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}, func(s Settings) bool { return s.grpc && s.address == "localhost:4317" && s.insecure }},
		"gRPC with TLS":   {[]string{"OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_ENDPOINT=https://c"}, func(s Settings) bool { return s.address == "c:443" && !s.insecure }},
		"gRPC without a scheme": {[]string{"OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_ENDPOINT=c:4317"},
			func(s Settings) bool { return s.address == "c:4317" && !s.insecure }},
		"gRPC without a scheme and TLS": {[]string{"OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_ENDPOINT=c:4317", "OTEL_EXPORTER_OTLP_INSECURE=true"},
			func(s Settings) bool { return s.insecure }},
		"a base URL": {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=https://c.example/otlp/"}, func(s Settings) bool {
			return s.address == "c.example:443" && s.path == "/otlp/v1/traces" && !s.insecure
		}},
		"a URL for traces is taken as it is": {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://a:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c/in"}, func(s Settings) bool {
			return s.address == "c:80" && s.path == "/in" && s.insecure
		}},
		"settings for traces go first": {[]string{
			"OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf", "OTEL_EXPORTER_OTLP_TIMEOUT=1", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT=2000",
			"OTEL_EXPORTER_OTLP_HEADERS=a=1", "OTEL_EXPORTER_OTLP_TRACES_HEADERS=b=2", "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION=gzip",
		}, func(s Settings) bool {
			return !s.grpc && s.timeout == 2*time.Second && len(s.headers) == 1 && s.headers["b"] == "2" && s.gzip
		}},
		"a variable that is set to nothing is not set": {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:1", "OTEL_EXPORTER_OTLP_ENDPOINT=", "OTEL_TRACES_SAMPLER="},
			func(s Settings) bool { return s.address == "localhost:4318" && s.sampler != nil }},
		"turned off":               {[]string{"OTEL_SDK_DISABLED=True"}, func(s Settings) bool { return s.Disabled }},
		"a sampler with a ratio":   {[]string{"OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG=0.5"}, func(s Settings) bool { return s.sampler.Description() == "TraceIDRatioBased{0.5}" }},
		"a sampler without one":    {[]string{"OTEL_TRACES_SAMPLER=traceidratio"}, func(s Settings) bool { return s.sampler.Description() == "TraceIDRatioBased{1}" }},
		"no trace but by a parent": {[]string{"OTEL_TRACES_SAMPLER=parentbased_always_off"}, func(s Settings) bool { return strings.HasPrefix(s.sampler.Description(), "ParentBased{root:AlwaysOff") }},
		"a name for the service":   {[]string{"OTEL_RESOURCE_ATTRIBUTES=service.name=a", "OTEL_SERVICE_NAME=b"}, func(s Settings) bool { return len(s.resource) == 2 && s.resource[1].Value.AsString() == "b" }},
	} {
		t.Run(name, func(t *testing.T) {
			s, problems := FromEnviron(tc.environ)
			if len(problems) > 0 || !tc.want(s) {
				t.Errorf("read as %+v, %q", s, problems)
			}
		})
	}
}

func TestAllThatIsWrongWithTheEnvironmentIsToldWithoutSecrets(t *testing.T) {
	got := []string{}
	for _, pair := range []string{
		"OTEL_EXPORTER_OTLP_PROTOCOL=http/json",
		"OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://me:hunter2@collector",
		"OTEL_EXPORTER_OTLP_ENDPOINT=https://collector?key=hunter2",
		"OTEL_EXPORTER_OTLP_HEADERS=a=1,hunter2",
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS=a=%zzhunter2",
		"OTEL_EXPORTER_OTLP_HEADERS=a=hunter2%0d%0ab: c",
		"OTEL_EXPORTER_OTLP_HEADERS=a b=hunter2",
		"OTEL_EXPORTER_OTLP_TIMEOUT=10s",
		"OTEL_EXPORTER_OTLP_COMPRESSION=zstd",
		"OTEL_EXPORTER_OTLP_CERTIFICATE=/nowhere/ca.pem",
		"OTEL_EXPORTER_OTLP_CLIENT_KEY=key.pem",
		"OTEL_TRACES_SAMPLER=jaeger_remote",
		"OTEL_RESOURCE_ATTRIBUTES=a",
		"OTEL_BSP_SCHEDULE_DELAY=often",
	} {
		_, problems := FromEnviron([]string{pair})
		if len(problems) == 0 {
			t.Errorf("%s is taken", pair)
		}
		for _, p := range problems {
			if strings.Contains(p, "hunter2") {
				t.Errorf("a secret is shown: %s", p)
			}
		}
		got = append(got, problems...)
	}
	for _, want := range []string{
		"OTEL_EXPORTER_OTLP_PROTOCOL: want grpc or http/protobuf", "OTEL_EXPORTER_OTLP_ENDPOINT: want a URL such as", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: want a URL without user",
		"want a URL without query", "OTEL_EXPORTER_OTLP_HEADERS: its entry 2 is no header", "OTEL_EXPORTER_OTLP_TRACES_HEADERS: its entry 1", "OTEL_EXPORTER_OTLP_TIMEOUT: want a whole number",
		"want gzip or none", "ca.pem: no such file", "go together", "want always_on", "OTEL_RESOURCE_ATTRIBUTES: its entry 1", "OTEL_BSP_SCHEDULE_DELAY",
	} {
		if !slices.ContainsFunc(got, func(p string) bool { return strings.Contains(p, want) }) {
			t.Errorf("nothing says %q: %q", want, got)
		}
	}
	// Everything at once, and with what makes a wrong number of a right variable.
	_, problems := FromEnviron([]string{"OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4317/v1/traces", "OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG=NaN", "OTEL_EXPORTER_OTLP_COMPRESSION=x"})
	if len(problems) != 3 {
		t.Errorf("told is %q, want three problems", problems)
	}
}
