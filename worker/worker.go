package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/tidemark-cdc/tidemark/activities"
	"github.com/tidemark-cdc/tidemark/workflows"
)

// Config sets up a worker.
type Config struct {
	// TaskQueue is where the pipeline's segments are scheduled. Required; see
	// workflows.TaskQueue for the default of a pipeline.
	TaskQueue string
	// Concurrency is the number of segments that are worked on at once, each of
	// which is held in memory, raw or encoded. Zero is 8.
	Concurrency int
	// Drain is how long running attempts may go on after the worker was told to
	// stop. What is not done by then is canceled and handed back to Temporal,
	// which has it tried again elsewhere at once. Zero is 30 s; negative is no
	// drain at all.
	Drain time.Duration
	// DrainLeft, if set, is asked when the drain begins and bounds it further:
	// what is left of a stop that began elsewhere in the process.
	DrainLeft func() time.Duration
	// Identity names the worker in Temporal's UI. Empty is the client's.
	Identity string
	// BuildID tells in Temporal which build of the program the worker is; to the
	// SDK it is one for the whole process. Empty is a checksum of the program,
	// which costs some 0.2 s of CPU at each start.
	BuildID string
}

// heartbeatInterval is the longest that the SDK holds heartbeats back. It is also
// how late an attempt learns that it was canceled, paused or reset.
const heartbeatInterval = 5 * time.Second

func (c Config) withDefaults() Config {
	if c.Concurrency == 0 {
		c.Concurrency = 8
	}
	switch {
	case c.Drain == 0:
		c.Drain = 30 * time.Second
	case c.Drain < 0:
		c.Drain = 0
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	if c.TaskQueue == "" {
		errs = append(errs, errors.New("the task queue is empty"))
	}
	if c.Concurrency < 1 {
		errs = append(errs, fmt.Errorf("the concurrency is %d, want at least 1", c.Concurrency))
	}
	return errors.Join(errs...)
}

// Deps are what a worker is made of. All are required and stay the caller's.
type Deps struct {
	// Client is connected with Options' logger. A streamer in the same process
	// starts workflows eagerly only through the same client.
	Client     client.Client
	Activities *activities.Activities
	Logger     *slog.Logger
}

// ClientLogger is the logger to make a Temporal client with.
func ClientLogger(logger *slog.Logger) log.Logger { return log.NewStructuredLogger(logger) }

// Run works until ctx ends, then lets running attempts finish for at most Drain,
// and takes up to 5 s more to tell Temporal of those that it has cut off. It
// returns nil after that, and an error if the worker cannot start, or if
// Temporal turns it away for good while it runs (its namespace is gone, say),
// which the SDK gives two minutes to pass. Nothing of it runs on after it has
// returned, except an attempt that does not heed its cancellation.
func Run(ctx context.Context, cfg Config, deps Deps) error {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return fmt.Errorf("configure worker: %w", err)
	}
	if cfg.BuildID != "" {
		//nolint:staticcheck // Options.BuildID does not keep the SDK from reading its own program
		worker.SetBinaryChecksum(cfg.BuildID)
	}
	fatal := make(chan error, 1)
	over, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	atEnd := func(f func()) func() bool { return context.AfterFunc(over, f) }
	w := worker.New(deps.Client, cfg.TaskQueue, worker.Options{
		MaxConcurrentActivityExecutionSize: cfg.Concurrency,
		WorkerStopTimeout:                  cfg.Drain + handBack,
		Interceptors:                       []interceptor.WorkerInterceptor{&cutter{atEnd: atEnd}},
		Identity:                           cfg.Identity,
		MaxHeartbeatThrottleInterval:       heartbeatInterval,
		DisableRegistrationAliasing:        true,
		OnFatalError: func(err error) {
			select {
			case fatal <- err:
			default: // The first one is the cause.
			}
		},
	})
	Register(w, deps.Activities)

	if err := w.Start(); err != nil {
		return fmt.Errorf("start worker on task queue %s: %w", cfg.TaskQueue, err)
	}
	deps.Logger.Info("worker started", "task_queue", cfg.TaskQueue, "concurrency", cfg.Concurrency)
	select {
	case err := <-fatal:
		// The SDK has stopped the worker; Stop waits until that is done.
		w.Stop()
		return fmt.Errorf("worker on task queue %s stopped by Temporal: %w", cfg.TaskQueue, err)
	case <-ctx.Done():
	}
	atMost := cfg.Drain
	if cfg.DrainLeft != nil {
		atMost = max(0, min(atMost, cfg.DrainLeft()))
	}
	deps.Logger.Info("worker drains: running attempts may finish", "task_queue", cfg.TaskQueue, "at_most", atMost)
	drain := time.AfterFunc(atMost, cut)
	defer drain.Stop()
	w.Stop()
	deps.Logger.Info("worker stopped", "task_queue", cfg.TaskQueue)
	return nil
}

// Register gives the workflows and the activities the names that histories carry.
func Register(r worker.Registry, a *activities.Activities) {
	r.RegisterWorkflowWithOptions(workflows.Segment, workflow.RegisterOptions{Name: workflows.SegmentName})
	r.RegisterWorkflowWithOptions(workflows.Replay, workflow.RegisterOptions{Name: workflows.ReplayName})
	r.RegisterActivityWithOptions(a.Upload, activity.RegisterOptions{Name: activities.UploadName})
	r.RegisterActivityWithOptions(a.Quarantine, activity.RegisterOptions{Name: activities.QuarantineName})
	r.RegisterActivityWithOptions(a.Replay, activity.RegisterOptions{Name: activities.ReplayName})
}
