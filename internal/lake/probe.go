package lake

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
)

// probeFolder begins the keys of what Probe writes, each another one. One that
// is left, of a process that was killed, is no finding of Verify's.
const probeFolder = recordsFolder + "probe-"

var (
	// ErrIgnoresConditions says that a store accepts a conditional write whose
	// condition does not hold.
	ErrIgnoresConditions = errors.New("the store does not keep its conditional writes")
	// ErrProbeLeft says that everything is in order but the removal of the
	// probe's object, which nothing else needs.
	ErrProbeLeft = errors.New("the object of the probe could not be removed")
)

// Probe shows by an object of its own that the store does what a pipeline
// needs: list, write, read, and refuse conditional writes whose condition does
// not hold. It removes the object again, also after ctx has ended. ErrProbeLeft
// if only that fails, ErrIgnoresConditions, or the error of the store.
func (l *Lake) Probe(ctx context.Context) (err error) {
	if err := l.Check(ctx); err != nil {
		return err
	}
	key := probeFolder + rand.Text()
	defer func() {
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if rerr := l.store.Remove(back, key); rerr != nil && err == nil {
			err = fmt.Errorf("probe lake: %w: %w", ErrProbeLeft, rerr)
		}
	}()
	if err := l.probe(ctx, key); err != nil {
		return fmt.Errorf("probe lake: %w", err)
	}
	return nil
}

func (l *Lake) probe(ctx context.Context, key string) error {
	first, second := []byte(`{"probe":1}`), []byte(`{"probe":2}`)
	etag, err := l.store.Put(ctx, key, first, Condition{IfNoneMatch: true})
	if err != nil {
		return err
	}
	if err := l.mustRefuse(ctx, key, second, Condition{IfNoneMatch: true}, "If-None-Match"); err != nil {
		return err
	}
	replaced, err := l.store.Put(ctx, key, second, Condition{IfMatch: etag})
	if err != nil {
		return fmt.Errorf("replace an object with the ETag that its write gave (If-Match): %w", err)
	}
	if err := l.mustRefuse(ctx, key, first, Condition{IfMatch: etag}, "If-Match"); err != nil {
		return err
	}
	body, now, err := l.store.Get(ctx, key)
	switch {
	case err != nil:
		return err
	case !bytes.Equal(body, second) || now != replaced:
		return fmt.Errorf("%s is read as other bytes or another ETag than were written: is something between that caches or rewrites?", key)
	}
	return nil
}

// mustRefuse writes what the store has to refuse.
func (l *Lake) mustRefuse(ctx context.Context, key string, body []byte, cond Condition, header string) error {
	_, err := l.store.Put(ctx, key, body, cond)
	switch {
	case errors.Is(err, ErrPrecondition):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%w: it accepted a write that %s forbids", ErrIgnoresConditions, header)
}
