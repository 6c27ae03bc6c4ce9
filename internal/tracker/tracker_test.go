package tracker_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"

	"github.com/tidemark-cdc/tidemark/internal/leaktest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/internal/tracker"
	"github.com/tidemark-cdc/tidemark/internal/tracker/trackertest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func dial(t *testing.T, f *trackertest.Frontend) client.Client {
	t.Helper()
	c, err := client.Dial(client.Options{
		HostPort: f.Address(), Namespace: trackertest.Namespace,
		Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func sources(t *testing.T, f *trackertest.Frontend, id string) []segment.Location {
	var all []segment.Location
	for _, input := range f.Signals(id) {
		var at segment.Location
		if err := converter.GetDefaultDataConverter().FromPayloads(input, &at); err != nil {
			t.Error(err)
		}
		all = append(all, at)
	}
	return all
}

func TestTheContractHoldsOverTheStandIn(t *testing.T) {
	f := trackertest.NewFrontend(t, &trackertest.Frontend{})
	trackertest.Run(t, trackertest.Env{
		Client: dial(t, f), Namespace: trackertest.Namespace, TaskQueue: "tidemark-test",
		Finish:  f.Finish,
		Sources: func(id string) []segment.Location { return sources(t, f, id) },
	})
}

// newTracker is a tracker over f with short pauses, whose namespace is set up.
func newTracker(t *testing.T, f *trackertest.Frontend, change func(*tracker.Config)) *tracker.Tracker {
	t.Helper()
	cfg := tracker.Config{
		TaskQueue: "tidemark-test", Namespace: trackertest.Namespace, Logger: slog.New(slog.DiscardHandler),
		CallTimeout: 30 * time.Second, MinBackoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond,
	}
	if change != nil {
		change(&cfg)
	}
	return tracker.New(dial(t, f), cfg)
}

var at = segment.Location{Instance: "a", Address: "127.0.0.1:4001"}

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
