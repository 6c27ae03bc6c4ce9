package lake

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
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

// Probe shows by objects of its own that the store does what a pipeline needs:
// list, write, read, and refuse conditional writes whose condition does not hold.
// It removes the objects again, also after ctx has ended. ErrProbeLeft if only
// that fails, ErrIgnoresConditions, or the error of the store.
func (l *Lake) Probe(ctx context.Context) error {
	if err := l.Check(ctx); err != nil {
		return err
	}
	// At once, since a far store takes its time for each write, and each with an
	// object of its own, since S3 may answer two conditional writes of one object
	// at once with 409.
	trials := []func(ctx context.Context, key, etag string) error{l.mustKeep, l.mustKeepOther, l.mustReplace}
	keys, errs := make([]string, len(trials)), make([]error, len(trials))
	var group sync.WaitGroup
	for i, try := range trials {
		keys[i] = probeFolder + rand.Text()
		group.Go(func() { errs[i] = l.probe(ctx, keys[i], try) })
	}
	group.Wait()
	// Not before: a gateway over a file system takes a folder away with its last
	// object, and may refuse a write to it meanwhile.
	left := l.removeAll(ctx, keys)
	for _, err := range append(errs, left) {
		if err != nil {
			return fmt.Errorf("probe lake: %w", err)
		}
	}
	return nil
}

// removeAll removes the objects of a probe, those that were made. The error is
// the first one, with ErrProbeLeft.
func (l *Lake) removeAll(ctx context.Context, keys []string) (first error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	for _, key := range keys {
		if err := l.store.Remove(ctx, key); err != nil && first == nil {
			first = fmt.Errorf("%w: %w", ErrProbeLeft, err)
		}
	}
	return first
}

var probed, replaced = []byte(`{"probe":1}`), []byte(`{"probe":2}`)

// probe makes an object and tries something with it.
func (l *Lake) probe(ctx context.Context, key string, try func(ctx context.Context, key, etag string) error) error {
	etag, err := l.store.Put(ctx, key, probed, Condition{IfNoneMatch: true})
	if err != nil {
		return err
	}
	return try(ctx, key, etag)
}

// mustKeep tries to make an object that is there.
func (l *Lake) mustKeep(ctx context.Context, key, _ string) error {
	return l.mustRefuse(ctx, key, replaced, Condition{IfNoneMatch: true}, "If-None-Match")
}

// mustKeepOther tries to replace an object that is another one by now.
func (l *Lake) mustKeepOther(ctx context.Context, key, etag string) error {
	return l.mustRefuse(ctx, key, replaced, Condition{IfMatch: otherTag(etag)}, "If-Match")
}

// otherTag is an ETag of the same form that the object does not have: each digit
// and letter is the one at the same place from the end of its range, and no range
// has a middle. Hexadecimal stays hexadecimal.
func otherTag(etag string) string {
	return strings.Map(func(r rune) rune {
		for _, ends := range []string{"09", "af", "gz", "AF", "GZ"} {
			if first, last := rune(ends[0]), rune(ends[1]); first <= r && r <= last {
				return first + last - r
			}
		}
		return r
	}, etag)
}

// mustReplace replaces an object and reads it.
func (l *Lake) mustReplace(ctx context.Context, key, etag string) error {
	tag, err := l.store.Put(ctx, key, replaced, Condition{IfMatch: etag})
	if err != nil {
		return fmt.Errorf("replace an object with the ETag that its write gave (If-Match): %w", err)
	}
	body, now, err := l.store.Get(ctx, key)
	switch {
	case err != nil:
		return err
	case !bytes.Equal(body, replaced) || now != tag:
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
