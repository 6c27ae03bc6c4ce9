package worker_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/tidemark-cdc/tidemark/activities"
	"github.com/tidemark-cdc/tidemark/internal/leaktest"
	"github.com/tidemark-cdc/tidemark/internal/tracker/trackertest"
	"github.com/tidemark-cdc/tidemark/worker"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func dial(t *testing.T, f *trackertest.Frontend, namespace string) client.Client {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: f.Address(), Namespace: namespace, Logger: worker.ClientLogger(quiet())})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func deps(c client.Client) worker.Deps {
	return worker.Deps{Client: c, Activities: &activities.Activities{Logger: quiet()}, Logger: quiet()}
}

func TestAWorkerThatCannotWorkIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg  worker.Config
		want []string
	}{
		"nothing is set":      {worker.Config{}, []string{"task queue"}},
		"a negative number":   {worker.Config{TaskQueue: "q", Concurrency: -1}, []string{"concurrency is -1"}},
		"everything is wrong": {worker.Config{Concurrency: -1}, []string{"task queue", "concurrency"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := worker.Run(t.Context(), tc.cfg, deps(nil))
			if err == nil {
				t.Fatal("it runs")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
		})
	}
}

func TestAWorkerRunsUntilItIsTold(t *testing.T) {
	polled := make(chan struct{})
	var once sync.Once
	f := trackertest.NewFrontend(t, &trackertest.Frontend{Before: func(method string) error {
		if method == "PollActivityTaskQueue" {
			once.Do(func() { close(polled) })
		}
		return nil
	}})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- worker.Run(ctx, worker.Config{TaskQueue: "q", Drain: time.Second}, deps(dial(t, f, trackertest.Namespace)))
	}()
	wait(t, polled)
	stop()
	if err := wait(t, done); err != nil {
		t.Error(err)
	}
}

func TestAWorkerThatTemporalTurnsAwayEnds(t *testing.T) {
	f := trackertest.NewFrontend(t, &trackertest.Frontend{})
	err := worker.Run(t.Context(), worker.Config{TaskQueue: "q"}, deps(dial(t, f, "nowhere")))
	if err == nil || !strings.Contains(err.Error(), "start worker on task queue q") {
		t.Errorf("ended with %v", err)
	}
}

func wait[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(2 * time.Minute):
		t.Fatal("nothing came")
	}
	return v
}

// registry notes the names that are registered.
type registry struct {
	sdkworker.Registry
	names []string
}

func (r *registry) RegisterWorkflowWithOptions(_ any, o workflow.RegisterOptions) {
	r.names = append(r.names, "workflow "+o.Name)
}

func (r *registry) RegisterActivityWithOptions(_ any, o activity.RegisterOptions) {
	r.names = append(r.names, "activity "+o.Name)
}

func TestTheNamesInHistoriesStay(t *testing.T) {
	var r registry
	worker.Register(&r, &activities.Activities{})
	want := []string{"workflow Segment", "workflow Replay", "activity Upload", "activity Quarantine", "activity Replay"}
	if !slices.Equal(r.names, want) {
		t.Errorf("registered are %q, want %q", r.names, want)
	}
}
