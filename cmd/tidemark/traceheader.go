package main

import (
	"context"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"github.com/tidemark-cdc/tidemark/internal/tracing"
	"github.com/tidemark-cdc/tidemark/workflows"
)

// traceHeader is the field of Temporal's headers in which its SDKs have traces,
// and traceparent what W3C Trace Context calls its part of it.
const (
	traceHeader = "_tracer-data"
	traceparent = "traceparent"
)

// putNode writes n into a header.
func putNode(header map[string]*commonpb.Payload, n tracing.Node) {
	// It fails for what is no JSON, which two texts are.
	if payload, err := converter.GetDefaultDataConverter().ToPayload(map[string]string{traceparent: n.String()}); err == nil && header != nil {
		header[traceHeader] = payload
	}
}

// nodeOf reads what putNode has written. Something else there is none of ours.
func nodeOf(header map[string]*commonpb.Payload) (tracing.Node, bool) {
	var fields map[string]string
	if payload := header[traceHeader]; payload == nil || converter.GetDefaultDataConverter().FromPayload(payload, &fields) != nil {
		return tracing.Node{}, false
	}
	n, err := tracing.ParseNode(fields[traceparent])
	return n, err == nil
}

// traceInterceptor takes the place in a segment's trace along: from the streamer,
// which starts the workflow with the root, to the workflow, and from that, with
// the node of its run, to the attempts.
type traceInterceptor struct {
	interceptor.InterceptorBase
	tracer *tracing.Tracer
}

// InterceptClient implements interceptor.ClientInterceptor.
func (t *traceInterceptor) InterceptClient(next interceptor.ClientOutboundInterceptor) interceptor.ClientOutboundInterceptor {
	return &tracedClient{interceptor.ClientOutboundInterceptorBase{Next: next}, t.tracer}
}

type tracedClient struct {
	interceptor.ClientOutboundInterceptorBase
	tracer *tracing.Tracer
}

// ExecuteWorkflow implements interceptor.ClientOutboundInterceptor.
func (c *tracedClient) ExecuteWorkflow(ctx context.Context, in *interceptor.ClientExecuteWorkflowInput) (client.WorkflowRun, error) {
	if len(in.Args) == 1 {
		if s, ok := in.Args[0].(workflows.SegmentInput); ok {
			putNode(interceptor.Header(ctx), c.tracer.Root(s.Ref))
		}
	}
	return c.Next.ExecuteWorkflow(ctx, in)
}

// InterceptWorkflow implements interceptor.WorkerInterceptor.
func (t *traceInterceptor) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &tracedWorkflow{WorkflowInboundInterceptorBase: interceptor.WorkflowInboundInterceptorBase{Next: next}, tracer: t.tracer}
}

// tracedWorkflow is one run of a workflow in this process' memory, which may be
// one of several that a run has had.
type tracedWorkflow struct {
	interceptor.WorkflowInboundInterceptorBase
	tracer *tracing.Tracer
	// self is the run's node; zero if it is not traced.
	self tracing.Node
}

// Init implements interceptor.WorkflowInboundInterceptor.
func (w *tracedWorkflow) Init(outbound interceptor.WorkflowOutboundInterceptor) error {
	return w.Next.Init(&tracedCalls{interceptor.WorkflowOutboundInterceptorBase{Next: outbound}, w})
}

// ExecuteWorkflow implements interceptor.WorkflowInboundInterceptor. A run that
// ends otherwise than by completing is told of by the streamer, which hears of
// every such end. Not deferred: a run that is dropped from memory unwinds too.
func (w *tracedWorkflow) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	root, ok := nodeOf(interceptor.WorkflowHeader(ctx))
	if !ok {
		return w.Next.ExecuteWorkflow(ctx, in)
	}
	info := workflow.GetInfo(ctx)
	w.self = root.Below(info.WorkflowExecution.RunID)
	out, err := w.Next.ExecuteWorkflow(ctx, in)
	if err == nil && !workflow.IsReplaying(ctx) {
		span := tracing.Span{Name: "workflow", Self: w.self, Parent: root, From: info.WorkflowStartTime, To: time.Now(),
			Attributes: ofRun(info.WorkflowExecution.ID, info.WorkflowExecution.RunID)}
		if s, ok := in.Args[0].(workflows.SegmentInput); ok {
			span.Attributes = append(ofSegment(s.Ref), span.Attributes...)
		}
		w.tracer.Emit(span)
	}
	return out, err
}

// tracedCalls are what a workflow asks for.
type tracedCalls struct {
	interceptor.WorkflowOutboundInterceptorBase
	of *tracedWorkflow
}

// ExecuteActivity implements interceptor.WorkflowOutboundInterceptor.
func (c *tracedCalls) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	if !c.of.self.IsZero() {
		putNode(interceptor.WorkflowHeader(ctx), c.of.self)
	}
	return c.Next.ExecuteActivity(ctx, name, args...)
}

// runKey is the key of an attempt's context for its run's node.
type runKey struct{}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (*traceInterceptor) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &tracedActivity{interceptor.ActivityInboundInterceptorBase{Next: next}}
}

type tracedActivity struct {
	interceptor.ActivityInboundInterceptorBase
}

// ExecuteActivity implements interceptor.ActivityInboundInterceptor.
func (a *tracedActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	if run, ok := nodeOf(interceptor.Header(ctx)); ok {
		ctx = context.WithValue(ctx, runKey{}, run)
	}
	return a.Next.ExecuteActivity(ctx, in)
}
