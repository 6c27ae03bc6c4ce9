package main

import (
	"context"
	"errors"
	"log/slog"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"

	"github.com/tidemark-cdc/tidemark/activities"
	"github.com/tidemark-cdc/tidemark/internal/config"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/internal/tracing"
	"github.com/tidemark-cdc/tidemark/streamer"
)

// withTracing adds to the error of settings that cannot be used what is wrong
// with OpenTelemetry's variables, if they are of any concern.
func withTracing(err error, c *config.Config, environ []string) error {
	if c.Tracing.Exporter != config.TracingOTLP {
		return err
	}
	_, problems := tracing.FromEnviron(environ)
	if len(problems) == 0 {
		return err
	}
	var invalid *config.InvalidError
	if errors.As(err, &invalid) {
		problems = append(invalid.Problems, problems...)
	}
	return &config.InvalidError{Problems: problems}
}

// traces makes the spans of a process' segments: a trace for each, whose root
// the streamer tells of. nil makes none.
type traces struct{ tracer *tracing.Tracer }

// newTraces gives nil where tracing is off.
func newTraces(ctx context.Context, c *config.Config, environ []string, r roles, instance string, logger *slog.Logger) (*traces, error) {
	if c.Tracing.Exporter != config.TracingOTLP {
		return nil, nil
	}
	settings, _ := tracing.FromEnviron(environ) // loadSettings has refused what is wrong
	if settings.Disabled {
		logger.Info("tracing stays off: OTEL_SDK_DISABLED is set")
		return nil, nil
	}
	tracer, err := tracing.New(ctx, tracing.Config{
		Settings: settings, Service: "tidemark-" + r.String(), Version: readBuild().Version, Instance: instance, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	return &traces{tracer}, nil
}

// close waits for the collector for two seconds at most.
func (t *traces) close() {
	if t != nil {
		t.tracer.Close()
	}
}

// interceptors are for Temporal's client, and through it for workers.
func (t *traces) interceptors() []interceptor.ClientInterceptor {
	if t == nil {
		return nil
	}
	return []interceptor.ClientInterceptor{&traceInterceptor{tracer: t.tracer}}
}

// ofStreamer is the streamer's Tracer; nil for none.
func (t *traces) ofStreamer() streamer.Tracer {
	if t == nil {
		return nil
	}
	return streamerTracer{t.tracer}
}

// ofWorker is the activities' Tracer; nil for none.
func (t *traces) ofWorker() activities.Tracer {
	if t == nil {
		return nil
	}
	return workerTracer{t.tracer}
}

// streamerTracer is a streamer's Tracer.
type streamerTracer struct{ tracer *tracing.Tracer }

// Traced implements streamer.Tracer.
func (t streamerTracer) Traced(s streamer.Step) {
	root := t.tracer.Root(s.Ref)
	span := tracing.Span{Name: string(s.Name), Parent: root, From: s.From, To: s.To, Attributes: ofSegment(s.Ref)}
	if s.Adopted != "" {
		span.Attributes = append(span.Attributes, slog.String("tidemark.adopted", string(s.Adopted)))
	}
	switch s.Name {
	case streamer.StepSegment:
		span.Self, span.Parent = root, tracing.Node{}
	case streamer.StepRun:
		span.Self, span.Failed = root.Below(s.Run), s.Ended
		span.Attributes = append(span.Attributes, ofRun(s.Ref.WorkflowID(), s.Run)...)
	}
	t.tracer.Emit(span)
}

// workerTracer is the activities' Tracer.
type workerTracer struct{ tracer *tracing.Tracer }

// Traced implements activities.Tracer. What no streamer has had traced is not.
func (t workerTracer) Traced(ctx context.Context, a activities.TracedAttempt) {
	run, ok := ctx.Value(runKey{}).(tracing.Node)
	if !ok {
		return
	}
	info := activity.GetInfo(ctx)
	whole := tracing.Span{Name: a.Action, Parent: run, From: a.From, To: a.To, Failed: string(a.Class),
		Attributes: append(ofSegment(a.Ref), ofRun(info.WorkflowExecution.ID, info.WorkflowExecution.RunID)...)}
	whole.Attributes = append(whole.Attributes, slog.String("temporalActivityID", info.ActivityID), slog.Int64("tidemark.attempt", int64(a.Number)))
	if a.Class == "" {
		whole.Attributes = append(whole.Attributes, slog.Int64("tidemark.objects", int64(len(a.Result.Objects))),
			slog.Bool("tidemark.existed", a.Result.Existed), slog.Bool("tidemark.quarantined", a.Result.Quarantined))
	}
	attempt := t.tracer.Emit(whole)
	for i, s := range a.Steps {
		span := tracing.Span{Name: s.Step.Word(), Parent: attempt, From: s.From, To: s.To, Attributes: []slog.Attr{
			slog.String("tidemark.pipeline", a.Ref.Pipeline), slog.Int64("tidemark.rows", s.Rows), slog.Int64("tidemark.bytes", s.Bytes),
		}}
		if last := i == len(a.Steps)-1; last {
			span.Failed = string(a.Class)
		}
		if s.Step == activities.StepStore {
			for _, o := range a.Result.Objects {
				span.Attributes = append(span.Attributes, slog.String("tidemark.object", o.Key))
			}
		}
		t.tracer.Emit(span)
	}
}

// ofSegment are the attributes of a span that is about a whole segment:
// positions and counts, and nothing that a row has in it.
func ofSegment(ref segment.Ref) []slog.Attr {
	return []slog.Attr{
		slog.String("tidemark.pipeline", ref.Pipeline),
		slog.String("tidemark.segment", ref.First.String()),
		slog.String("tidemark.first_lsn", ref.First.LSN.String()),
		slog.String("tidemark.last_lsn", ref.Last.LSN.String()),
		slog.Int64("tidemark.rows", ref.Rows),
		slog.Int64("tidemark.bytes", ref.Bytes),
		slog.Int64("tidemark.tables", int64(ref.TableCount)),
	}
}

// ofRun are the attributes by which Temporal's own tracing tells of a run.
func ofRun(workflowID, runID string) []slog.Attr {
	return []slog.Attr{slog.String("temporalWorkflowID", workflowID), slog.String("temporalRunID", runID)}
}
