package streamer

import (
	"context"
	"log/slog"
	"time"
)

// Bounds of the pause between two attempts at something outside.
const (
	firstBackoff = time.Second
	lastBackoff  = 30 * time.Second
)

// patiently calls try until it succeeds, says that another attempt cannot help,
// or ctx ends. Between two attempts it logs what, with the error, and pauses.
func patiently(ctx context.Context, log *slog.Logger, what string, try func() (again bool, err error)) error {
	for wait := firstBackoff; ; wait = min(2*wait, lastBackoff) {
		again, err := try()
		if err == nil || !again {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		log.Warn(what, "error", err, "again_in", wait)
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// sleep pauses for d, or less if ctx ends; then the error is ctx's.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
