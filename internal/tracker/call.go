package tracker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc/codes"
)

// call does one call to Temporal, again and again until it succeeds, fails in a
// way that no retry mends, or ctx ends. Each try is bounded by CallTimeout.
func (t *Tracker) call(ctx context.Context, action string, do func(context.Context) error) error {
	return t.again(ctx, action, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, t.cfg.CallTimeout)
		defer cancel()
		return do(ctx)
	})
}

// poll is call for a long poll, which only ctx bounds.
func (t *Tracker) poll(ctx context.Context, action string, do func(context.Context) error) error {
	return t.again(ctx, action, do)
}

func (t *Tracker) again(ctx context.Context, action string, do func(context.Context) error) error {
	backoff := t.cfg.MinBackoff
	var unknownSince time.Time
	for {
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", action, context.Cause(ctx))
		}
		err := do(ctx)
		if ctx.Err() != nil && err != nil {
			return fmt.Errorf("%s: %w", action, context.Cause(ctx))
		}
		switch kind(err) {
		case answered:
			t.outage.over()
			return wrap(action, err)
		case attributesUnknown:
			t.outage.over()
			if unknownSince.IsZero() {
				unknownSince = time.Now()
			}
			if time.Since(unknownSince) > t.cfg.AttributePatience {
				return fmt.Errorf("%s: the namespace %s does not know Tidemark's search attributes; run `tidemark setup`: %w", action, t.cfg.Namespace, err)
			}
		case namespaceGone:
			t.outage.over()
			return fmt.Errorf("%s: Temporal has no namespace %s (any more): %w; nothing is lost, since the ack stands still. Make it again (temporal operator namespace create --namespace %s --retention 72h), run `tidemark setup`, and start this pipeline again: what is in the lake is adopted from there",
				action, t.cfg.Namespace, err, t.cfg.Namespace)
		case refused:
			t.outage.over()
			return fmt.Errorf("%s: Temporal refuses it: %w; see that this connection may use the namespace %s and that server and Tidemark fit together, and start it again: nothing is lost meanwhile",
				action, err, t.cfg.Namespace)
		case unreachable:
			t.outage.note(err)
		}
		// Jittered, so that many segments do not come back at once.
		if err := pause(ctx, backoff/2+rand.N(backoff/2+1)); err != nil {
			return fmt.Errorf("%s: %w", action, err)
		}
		backoff = min(2*backoff, t.cfg.MaxBackoff)
	}
}

func wrap(action string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", action, err)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// answer says what to make of a call's error.
type answer int

const (
	// answered: success, or one of the errors that a method understands.
	answered answer = iota
	// unreachable: nothing came back, or nothing that speaks of the call.
	unreachable
	// attributesUnknown: Temporal does not know a search attribute.
	attributesUnknown
	// namespaceGone: the namespace does not exist (any more).
	namespaceGone
	// refused: the same call would be refused again.
	refused
)

func kind(err error) answer {
	if err == nil {
		return answered
	}
	var (
		exists      *serviceerror.WorkflowExecutionAlreadyStarted
		notFound    *serviceerror.NotFound
		noNamespace *serviceerror.NamespaceNotFound
		invalid     *serviceerror.InvalidArgument
	)
	switch {
	case errors.As(err, &exists), errors.As(err, &notFound):
		return answered
	case errors.As(err, &noNamespace):
		return namespaceGone
	case errors.As(err, &invalid):
		if strings.Contains(invalid.Message, "no mapping defined") ||
			strings.Contains(invalid.Message, "search attribute") && strings.Contains(invalid.Message, "is not defined") {
			return attributesUnknown
		}
		return refused
	}
	switch code(err) {
	case codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented, codes.InvalidArgument:
		return refused
	}
	return unreachable
}

func code(err error) codes.Code { return serviceerror.ToStatus(err).Code() }

// reminder is the pause between two log lines of one outage.
const reminder = time.Minute

// outage says once that Temporal is unreachable, reminds, and says once that it
// is back, however many calls notice.
type outage struct {
	log    *slog.Logger
	notify func(time.Time, error)

	mu    sync.Mutex
	since time.Time // zero: none. Guarded by mu, as is said.
	said  time.Time
}

func (o *outage) note(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	begins := o.since.IsZero()
	if begins {
		o.since = now
	}
	if begins && o.notify != nil {
		o.notify(o.since, err)
	}
	if begins || now.Sub(o.said) >= reminder {
		o.said = now
		o.log.Warn("Temporal is unreachable: nothing is dispatched and the ack stands still until it answers again; nothing is lost, and nothing has to be restarted. See that its frontend runs and can be reached from here",
			"since", o.since, "error", err)
	}
}

func (o *outage) over() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		return
	}
	o.log.Info("Temporal answers again", "since", o.since, "outage", time.Since(o.since).Round(time.Millisecond))
	o.since = time.Time{}
	if o.notify != nil {
		o.notify(time.Time{}, nil)
	}
}
