package lake

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// pauseKey holds the lake's Pause; that it is there pauses the pipeline.
const pauseKey = recordsFolder + "paused.json"

// Pause says that a person has paused the pipeline: while it stands in the lake,
// no streamer dispatches anything.
type Pause struct {
	// By names who paused it, Reason says why; both are for people.
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since"`
}

// String is the sentence that status, log and health checks show.
func (p Pause) String() string {
	s := fmt.Sprintf("paused by %s since %s", p.By, p.Since.UTC().Format(time.RFC3339))
	if p.Reason == "" {
		return s + ", no reason was given"
	}
	return s + " because: " + p.Reason
}

// ReadPause reads _tidemark/paused.json; nil if the pipeline is not paused.
func (l *Lake) ReadPause(ctx context.Context) (*Pause, error) {
	var p Pause
	_, err := l.readRecord(ctx, pauseKey, &p)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read whether the pipeline is paused: %w", err)
	}
	return &p, nil
}

// WritePause pauses the pipeline. If it is paused already, that stands: it is
// returned, with false. So a call whose reply was lost can be repeated.
func (l *Lake) WritePause(ctx context.Context, p Pause) (Pause, bool, error) {
	if p.By == "" || p.Since.IsZero() {
		return Pause{}, false, errors.New("pause: the record does not say by whom and since when")
	}
	p.Since = p.Since.UTC().Truncate(time.Second)
	body, err := encodeRecord(p)
	if err != nil {
		return Pause{}, false, fmt.Errorf("pause: %w", err)
	}
	// Whoever resumes between the two lets this one pause again.
	for range 3 {
		if _, err = l.store.Put(ctx, pauseKey, body, Condition{IfNoneMatch: true}); err == nil {
			return p, true, nil
		}
		if !errors.Is(err, ErrPrecondition) {
			break
		}
		there, readErr := l.ReadPause(ctx)
		if readErr != nil {
			return Pause{}, false, fmt.Errorf("pause: %w", readErr)
		}
		if there != nil {
			return *there, *there == p, nil
		}
	}
	return Pause{}, false, fmt.Errorf("pause: %w", err)
}

// RemovePause resumes the pipeline, and gives the pause that it ends; nil if
// there was none.
func (l *Lake) RemovePause(ctx context.Context) (*Pause, error) {
	p, err := l.ReadPause(ctx)
	if err != nil || p == nil {
		return nil, err
	}
	if err := l.store.Remove(ctx, pauseKey); err != nil {
		return nil, fmt.Errorf("resume: remove %s/%s: %w", l.url, pauseKey, err)
	}
	return p, nil
}
