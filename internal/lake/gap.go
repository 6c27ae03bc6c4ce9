package lake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// Gap is a recorded gap: changes that are known not to be in the lake and never
// will be, such as after a slot was dropped. It is a link of the chain.
type Gap struct {
	Pipeline string `json:"pipeline"`
	SystemID string `json:"system_id"`
	// Follows is the last position before the gap, and Last its end: the next
	// segment follows it. Follows < Last.
	Follows change.Position `json:"follows"`
	Last    change.Position `json:"last"`
	// Empty says that nothing was committed in between, as far as a person could
	// show: the link only leads from one server to its successor.
	Empty bool `json:"empty,omitempty"`
	// Reason says in a sentence what happened, for people.
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// Key is where the gap is recorded.
func (g Gap) Key() string {
	return gapsFolder + g.Follows.String() + "_" + g.Last.String() + ".json"
}

// parseGapKey reads what Gap.Key makes.
func parseGapKey(key string) (Gap, error) {
	var g Gap
	var err error
	if g.Follows, g.Last, err = parseRange(gapsFolder, key); err != nil || g.Key() != key {
		return Gap{}, fmt.Errorf("parse key %q: want %s<follows>_<last>.json", key, gapsFolder)
	}
	return g, nil
}

// parseRange reads <folder><position>_<position>.json, the first before the
// second.
func parseRange(folder, key string) (from, to change.Position, err error) {
	name := strings.TrimSuffix(strings.TrimPrefix(key, folder), ".json")
	first, last, _ := strings.Cut(name, "_")
	if from, err = change.ParsePosition(first); err == nil {
		to, err = change.ParsePosition(last)
	}
	if err == nil && !from.Less(to) {
		err = fmt.Errorf("%s does not stand before %s", from, to)
	}
	return from, to, err
}

// RecordGap writes a gap down. That a gap with the same ends is recorded already
// is success, so a call whose reply was lost can be repeated.
func (l *Lake) RecordGap(ctx context.Context, g Gap) error {
	if g.Pipeline == "" || g.SystemID == "" || !g.Follows.Less(g.Last) {
		return fmt.Errorf("record a gap: pipeline %q, system %q, from %s to %s is not a gap", g.Pipeline, g.SystemID, g.Follows, g.Last)
	}
	err := recordOnce(ctx, l, g.Key(), g, l.readGap)
	if err != nil {
		return fmt.Errorf("record a gap: %w", err)
	}
	return nil
}

// readGap reads a recorded gap. What it says must agree with its key.
func (l *Lake) readGap(ctx context.Context, key string) (Gap, error) {
	want, err := parseGapKey(key)
	if err != nil {
		return Gap{}, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	g, err := readLink[Gap](ctx, l, key)
	if err != nil {
		return Gap{}, err
	}
	if g.Follows != want.Follows || g.Last != want.Last {
		return Gap{}, fmt.Errorf("%w: it says that it goes from %s to %s", ErrUnreadable, g.Follows, g.Last)
	}
	return g, nil
}

// Gaps are the recorded gaps in stream order.
func (l *Lake) Gaps(ctx context.Context) ([]Gap, error) {
	gaps, err := readAll(ctx, l, gapsFolder, l.readGap)
	if err != nil {
		return nil, fmt.Errorf("read the recorded gaps: %w", err)
	}
	slices.SortFunc(gaps, func(a, b Gap) int { return a.Follows.Compare(b.Follows) })
	return gaps, nil
}

// recordOnce writes v under key, which says what v is. That there is one already
// is success, if it can be read.
func recordOnce[T any](ctx context.Context, l *Lake, key string, v T, read func(context.Context, string) (T, error)) error {
	body, err := encodeRecord(v)
	if err == nil {
		_, err = l.store.Put(ctx, key, body, Condition{IfNoneMatch: true})
	}
	if errors.Is(err, ErrPrecondition) {
		_, err = read(ctx, key)
	}
	return err
}

// readLink reads what recordOnce wrote. ErrUnreadable if it is none.
func readLink[T any](ctx context.Context, l *Lake, key string) (v T, err error) {
	body, _, err := l.store.Get(ctx, key)
	if err != nil {
		return v, err
	}
	if err := decodeRecord(body, &v); err != nil {
		return v, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return v, nil
}

// readAll reads every record of a folder.
func readAll[T any](ctx context.Context, l *Lake, folder string, read func(context.Context, string) (T, error)) ([]T, error) {
	var all []T
	for info, err := range l.store.List(ctx, folder, "") {
		if err != nil {
			return nil, err
		}
		one, err := read(ctx, info.Key)
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w", l.url, info.Key, err)
		}
		all = append(all, one)
	}
	return all, nil
}
