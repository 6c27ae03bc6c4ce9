package worker

import (
	"context"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
)

// handBack is how long the worker waits, once the drain is over, for the
// attempts that it has cut off to be reported to Temporal as failed. Reported,
// they are scheduled again at once; otherwise only their heartbeat timeout tells
// Temporal that nobody works on them.
const handBack = 5 * time.Second

// cutter cancels the running attempts when the drain is over. The SDK would do so
// only after it has stopped waiting for them, and the process would be gone
// before what they return is reported.
type cutter struct {
	interceptor.WorkerInterceptorBase
	atEnd atEnd
}

// atEnd has f called when the drain is over, unless stop comes first.
type atEnd func(f func()) (stop func() bool)

// InterceptActivity implements interceptor.WorkerInterceptor.
func (c *cutter) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &cuttable{ActivityInboundInterceptorBase: interceptor.ActivityInboundInterceptorBase{Next: next}, atEnd: c.atEnd}
}

type cuttable struct {
	interceptor.ActivityInboundInterceptorBase
	atEnd atEnd
}

// ExecuteActivity runs one attempt.
func (a *cuttable) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := a.atEnd(func() { cancel(worker.ErrWorkerShutdown) })
	defer stop()
	return a.Next.ExecuteActivity(ctx, in)
}
