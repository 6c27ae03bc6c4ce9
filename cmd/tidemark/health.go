package main

import (
	"fmt"
	"sync"
	"time"
)

// health is what a process knows of itself beyond its streamer's status. Safe
// for concurrent use.
type health struct {
	mu          sync.Mutex
	temporalBad time.Time
	temporalErr error
}

// temporalOutage notes that Temporal cannot be reached since a time, or, with
// the zero time, that it can. Of several times the first one counts.
func (h *health) temporalOutage(since time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case since.IsZero():
		h.temporalBad, h.temporalErr = time.Time{}, nil
	case h.temporalBad.IsZero():
		h.temporalBad, h.temporalErr = since, err
	default:
		h.temporalErr = err
	}
}

// outage is since when Temporal has not been reached, and why; zero while it
// answers.
func (h *health) outage() (since time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.temporalBad, h.temporalErr
}

// temporalOutageFor is for how long Temporal has not been reached; zero while it
// answers.
func (h *health) temporalOutageFor(now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.temporalBad.IsZero() {
		return 0
	}
	return max(0, now.Sub(h.temporalBad))
}

// reasons says why the process cannot do its work, a sentence each.
func (h *health) reasons() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []string
	if !h.temporalBad.IsZero() {
		list = append(list, fmt.Sprintf("Temporal cannot be reached since %s: %v", h.temporalBad.UTC().Format(time.RFC3339), h.temporalErr))
	}
	return list
}
