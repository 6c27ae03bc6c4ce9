package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// Config sets up a Tracer.
type Config struct {
	Settings Settings
	// Service, Version and Instance tell what the process is, where the
	// environment does not say otherwise: service.name, service.version and
	// service.instance.id.
	Service, Version, Instance string
	// Logger is required.
	Logger *slog.Logger
}

// serviceName is the attribute of a resource that a process is found by.
const serviceName = "service.name"

// maxWaiting bounds the spans that wait for the collector, those on their way to
// it included. A span is some hundred bytes to 2 KiB.
const maxWaiting = 2048

// flushBound is how long Close waits for the collector to take what waits.
const flushBound = 2 * time.Second

// Tracer sends spans to a collector. Safe for concurrent use.
type Tracer struct {
	sampler  sdktrace.Sampler
	provider *sdktrace.TracerProvider
	spans    trace.Tracer
	queue    *queue
}

// New makes a Tracer, which has to be closed. The collector is not waited for.
func New(ctx context.Context, cfg Config) (*Tracer, error) {
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(append([]attribute.KeyValue{
		attribute.String(serviceName, cfg.Service),
		attribute.String("service.version", cfg.Version),
		attribute.String("service.instance.id", cfg.Instance),
	}, cfg.Settings.resource...)...))
	if err != nil {
		return nil, fmt.Errorf("describe this process for traces: %w", err)
	}
	// The library's own logger shows what it was given, headers too.
	otel.SetLogger(logr.Discard())
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		cfg.Logger.Debug("tracing", "error", cfg.Settings.masked(err.Error()))
	}))
	out, err := newExporter(ctx, cfg.Settings, cfg.Logger)
	if err != nil {
		return nil, fmt.Errorf("send traces to %s: %w", cfg.Settings.address, err)
	}
	q := &queue{SpanProcessor: sdktrace.NewBatchSpanProcessor(out, sdktrace.WithMaxQueueSize(maxWaiting)), out: out}
	t := &Tracer{
		sampler: cfg.Settings.sampler, queue: q,
		provider: sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithSampler(cfg.Settings.sampler),
			sdktrace.WithIDGenerator(ids{}), sdktrace.WithSpanProcessor(q)),
	}
	t.spans = t.provider.Tracer("github.com/tidemark-cdc/tidemark", trace.WithInstrumentationVersion(cfg.Version))
	cfg.Logger.Info("traces are sent by OTLP", "to", cfg.Settings.address, "sampler", cfg.Settings.sampler.Description())
	return t, nil
}

// Root is the root of a segment's trace. It says whether the trace is sampled,
// by this process' sampler.
func (t *Tracer) Root(ref segment.Ref) Node {
	root := rootOf(ref)
	asked := sdktrace.SamplingParameters{ParentContext: context.Background(), TraceID: root.trace, Name: ref.WorkflowID()}
	root.sampled = t.sampler.ShouldSample(asked).Decision == sdktrace.RecordAndSample
	return root
}

// Span is something that was done, and is over.
type Span struct {
	Name string
	// Parent is below which it stands; zero for a root.
	Parent Node
	// Self is the Node that others know it by, which a root has to have; zero for
	// one that is new.
	Self Node
	// From and To are when it began and ended, by whichever clock.
	From, To time.Time
	// Attributes are texts, whole numbers and booleans; others are written as
	// texts.
	Attributes []slog.Attr
	// Failed is the class of the error that it ended with; empty for none.
	Failed string
}

// Emit sends a span, if its trace is sampled, and returns its Node.
func (t *Tracer) Emit(s Span) Node {
	attrs := make([]attribute.KeyValue, 0, len(s.Attributes)+1)
	for _, a := range s.Attributes {
		attrs = append(attrs, attributeOf(a))
	}
	if s.Failed != "" {
		attrs = append(attrs, attribute.String("error.type", s.Failed))
	}
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), s.Parent.context())
	if !s.Self.IsZero() {
		ctx = context.WithValue(ctx, selfKey{}, s.Self)
	}
	_, span := t.spans.Start(ctx, s.Name, trace.WithTimestamp(s.From), trace.WithAttributes(attrs...))
	if s.Failed != "" {
		span.SetStatus(codes.Error, s.Failed)
	}
	end := s.To
	if end.Before(s.From) {
		end = s.From
	}
	span.End(trace.WithTimestamp(end))
	return nodeOf(span.SpanContext())
}

func attributeOf(a slog.Attr) attribute.KeyValue {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindInt64:
		return attribute.Int64(a.Key, v.Int64())
	case slog.KindBool:
		return attribute.Bool(a.Key, v.Bool())
	default:
		return attribute.String(a.Key, v.String())
	}
}

// Close sends what waits, for which it takes two seconds at most, and drops what
// the collector has not taken by then. Nothing of t runs on after it.
func (t *Tracer) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), flushBound)
	defer cancel()
	// Neither has an error but the context's: what becomes of spans is logged.
	_ = t.provider.ForceFlush(ctx)
	t.queue.out.giveUp()
	_ = t.provider.Shutdown(context.Background())
	t.queue.out.close()
}
