package tracing

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc/credentials"
)

// queue takes in spans as long as there is room. The processor behind it has as
// much, but would drop in silence.
type queue struct {
	sdktrace.SpanProcessor
	out *exporter
}

// OnEnd implements sdktrace.SpanProcessor.
func (q *queue) OnEnd(s sdktrace.ReadOnlySpan) {
	if q.out.waiting.Add(1) > maxWaiting {
		q.out.waiting.Add(-1)
		q.out.lost.Add(1)
		return
	}
	q.SpanProcessor.OnEnd(s)
}

// exporter sends batches of spans, and says when they are not taken. The
// processor calls it with one batch at a time.
type exporter struct {
	next sdktrace.SpanExporter
	// waiting are the spans that the queue has taken in and that were not yet
	// sent or given up; lost those that were dropped since that was said.
	waiting, lost atomic.Int64
	outage        outage
	// stopped ends when nothing is to be waited for any more.
	stopped context.Context
	giveUp  context.CancelFunc
	// idle closes connections.
	idle func()
}

func newExporter(ctx context.Context, s Settings, logger *slog.Logger) (*exporter, error) {
	e := &exporter{outage: outage{log: logger, settings: s}, idle: func() {}}
	var err error
	if s.grpc {
		e.next, err = otlptracegrpc.New(ctx, s.overGRPC()...)
	} else {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		e.idle = transport.CloseIdleConnections
		e.next, err = otlptracehttp.New(ctx, s.overHTTP(transport)...)
	}
	if err != nil {
		return nil, err
	}
	e.stopped, e.giveUp = context.WithCancel(context.Background())
	return e, nil
}

// overGRPC are the options for gRPC. They override what the library reads from
// the environment for itself.
func (s Settings) overGRPC() []otlptracegrpc.Option {
	options := []otlptracegrpc.Option{
		otlptracegrpc.WithEndpoint(s.address), otlptracegrpc.WithHeaders(s.headers), otlptracegrpc.WithTimeout(s.timeout),
	}
	if s.gzip {
		options = append(options, otlptracegrpc.WithCompressor("gzip"))
	}
	if s.insecure {
		return append(options, otlptracegrpc.WithInsecure())
	}
	return append(options, otlptracegrpc.WithTLSCredentials(credentials.NewTLS(s.clientTLS())))
}

// overHTTP is overGRPC for HTTP. transport becomes the exporter's.
func (s Settings) overHTTP(transport *http.Transport) []otlptracehttp.Option {
	options := []otlptracehttp.Option{
		otlptracehttp.WithEndpoint(s.address), otlptracehttp.WithURLPath(s.path), otlptracehttp.WithHeaders(s.headers),
		otlptracehttp.WithHTTPClient(&http.Client{
			Transport: transport, Timeout: s.timeout,
			// The headers are for this collector only.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}),
	}
	if s.gzip {
		options = append(options, otlptracehttp.WithCompression(otlptracehttp.GzipCompression))
	}
	if s.insecure {
		return append(options, otlptracehttp.WithInsecure())
	}
	transport.TLSClientConfig = s.clientTLS()
	return options
}

func (s Settings) clientTLS() *tls.Config {
	if s.tls == nil {
		return &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return s.tls.Clone()
}

// ExportSpans implements sdktrace.SpanExporter. It never fails: what there is to
// say is said here.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	defer e.waiting.Add(-int64(len(spans)))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.stopped, cancel)()
	err := e.stopped.Err()
	if err == nil {
		err = e.next.ExportSpans(ctx, spans)
	}
	if err != nil {
		e.lost.Add(int64(len(spans)))
	}
	if e.stopped.Err() == nil {
		e.outage.note(err, e.lost.Swap(0), time.Now())
	}
	return nil
}

// Shutdown implements sdktrace.SpanExporter.
func (e *exporter) Shutdown(ctx context.Context) error { return e.next.Shutdown(ctx) }

// close says what a collector that did not answer has cost, and closes
// connections.
func (e *exporter) close() {
	e.giveUp()
	e.outage.end(e.lost.Swap(0))
	e.idle()
}

// reminder is the pause between two log lines of one outage.
const reminder = 10 * time.Minute

// errTooMany stands for an error where the collector takes spans, but too slowly.
var errTooMany = errors.New("there are more spans than the collector takes in time; OTEL_TRACES_SAMPLER can have only some segments traced")

// outage says once that spans are lost, reminds, and says once that they are
// delivered again.
type outage struct {
	log      *slog.Logger
	settings Settings

	mu          sync.Mutex
	since, said time.Time // zero: none
	lost        int64
}

// note is told of every batch: how it ended, and how many spans were lost since
// the one before.
func (o *outage) note(err error, lost int64, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lost += lost
	if err == nil && lost > 0 {
		err = errTooMany
	}
	switch {
	case err == nil && o.since.IsZero():
	case err == nil:
		o.log.Info("traces are delivered again", "since", o.since, "spans_lost", o.lost)
		o.since, o.lost = time.Time{}, 0
	case o.since.IsZero() || now.Sub(o.said) >= reminder:
		if o.since.IsZero() {
			o.since = now
		}
		o.said = now
		o.log.Warn("traces are not delivered and are dropped; nothing else is concerned. See that the collector runs, takes OTLP at this address, and accepts OTEL_EXPORTER_OTLP_HEADERS",
			"collector", o.settings.address, "since", o.since, "spans_lost", o.lost, "error", o.settings.masked(err.Error()))
	}
}

// end says what was lost and not told of, at the end of the process.
func (o *outage) end(lost int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lost += lost; o.lost > 0 {
		o.log.Warn("stopping without having delivered all traces", "collector", o.settings.address, "spans_lost", o.lost)
	}
}

// masked is text, which may be what a collector has answered, without the values
// of headers, or a word of one: the token after Bearer. What is shorter than a
// secret can be stays.
func (s Settings) masked(text string) string {
	for _, value := range s.headers {
		for _, part := range append([]string{value}, strings.Fields(value)...) {
			if len(part) >= 4 {
				text = strings.ReplaceAll(text, part, "xxxxx")
			}
		}
	}
	return text
}
