package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
)

// journal notes the order in which services stop.
type journal struct {
	mu    sync.Mutex
	names []string
}

func (j *journal) service(name string) service {
	return service{name: name, run: func(ctx context.Context) error {
		<-ctx.Done()
		j.mu.Lock()
		defer j.mu.Unlock()
		j.names = append(j.names, name)
		return nil
	}}
}

func TestServicesStopFromLastToFirst(t *testing.T) {
	var j journal
	ctx, cancel := context.WithCancel(t.Context())
	last := service{name: "streamer", run: func(ctx context.Context) error { cancel(); return j.service("streamer").run(ctx) }}
	if err := runServices(ctx, j.service("page"), j.service("worker"), last); err != nil {
		t.Fatal(err)
	}
	if want := []string{"streamer", "worker", "page"}; !slices.Equal(j.names, want) {
		t.Errorf("stopped in the order %v, want %v", j.names, want)
	}
}

func TestAServiceThatEndsStopsTheOthers(t *testing.T) {
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		s    service
		want string
	}{
		"with an error": {service{name: "x", run: func(context.Context) error { return broken }}, "broken"},
		"without one":   {service{name: "x", run: func(context.Context) error { return nil }}, "x ended by itself"},
	} {
		t.Run(name, func(t *testing.T) {
			var j journal
			err := runServices(t.Context(), j.service("first"), tc.s, j.service("last"))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
			if want := []string{"last", "first"}; !slices.Equal(j.names, want) {
				t.Errorf("stopped in the order %v, want %v", j.names, want)
			}
		})
	}
}

func TestErrorsWhileStoppingAreNotLost(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	bad := service{name: "bad", run: func(ctx context.Context) error { <-ctx.Done(); return errors.New("could not close") }}
	var j journal
	if err := runServices(ctx, bad, j.service("last")); err == nil || err.Error() != "could not close" {
		t.Errorf("got %v", err)
	}
}
