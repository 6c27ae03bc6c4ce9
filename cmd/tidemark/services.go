package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// service is a part of a process that runs until its context ends.
type service struct {
	name string
	run  func(context.Context) error
}

// ended is how a service ended.
type ended struct {
	index int
	err   error
}

// runServices runs services until ctx ends or one of them does. Then it stops
// them from the last to the first, each only when those after it have returned:
// so whatever a service leans on stands before it in the list. It returns when
// all have, with their errors.
func runServices(ctx context.Context, services ...service) error {
	// Only the order of stopping ends a service, never ctx itself.
	base := context.WithoutCancel(ctx)
	stops := make([]context.CancelFunc, len(services))
	done := make(chan ended, len(services))
	for i, s := range services {
		var own context.Context
		own, stops[i] = context.WithCancel(base)
		go func() { done <- ended{i, s.run(own)} }()
	}
	defer func() {
		for _, stop := range stops {
			stop()
		}
	}()

	returned := make([]bool, len(services))
	var errs []error
	note := func(e ended, stopping bool) (stop bool) {
		s := services[e.index]
		returned[e.index] = true
		switch {
		case e.err != nil:
			errs = append(errs, e.err)
		case !stopping:
			errs = append(errs, fmt.Errorf("%s ended by itself", s.name))
		default:
			return false
		}
		return true
	}
	for running := true; running; {
		select {
		case <-ctx.Done():
			running = false
		case e := <-done:
			running = !note(e, false)
		}
	}
	for i, stop := range slices.Backward(stops) {
		stop()
		for !returned[i] {
			note(<-done, true)
		}
	}
	return errors.Join(errs...)
}
