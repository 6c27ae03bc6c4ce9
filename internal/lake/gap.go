package lake

import (
	"context"
	"fmt"
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
	name := strings.TrimSuffix(strings.TrimPrefix(key, gapsFolder), ".json")
	follows, last, _ := strings.Cut(name, "_")
	var err error
	if g.Follows, err = change.ParsePosition(follows); err == nil {
		g.Last, err = change.ParsePosition(last)
	}
	if err != nil || !g.Follows.Less(g.Last) || g.Key() != key {
		return Gap{}, fmt.Errorf("parse key %q: want %s<follows>_<last>.json", key, gapsFolder)
	}
	return g, nil
}

// RecordGap writes a gap down. ErrPrecondition if it is recorded already.
func (l *Lake) RecordGap(ctx context.Context, g Gap) error {
	if g.Pipeline == "" || g.SystemID == "" || !g.Follows.Less(g.Last) {
		return fmt.Errorf("record a gap: pipeline %q, system %q, from %s to %s is not a gap", g.Pipeline, g.SystemID, g.Follows, g.Last)
	}
	body, err := encodeRecord(g)
	if err == nil {
		_, err = l.store.Put(ctx, g.Key(), body, Condition{IfNoneMatch: true})
	}
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
	body, _, err := l.store.Get(ctx, key)
	if err != nil {
		return Gap{}, err
	}
	var g Gap
	if err := decodeRecord(body, &g); err != nil {
		return Gap{}, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	if g.Follows != want.Follows || g.Last != want.Last {
		return Gap{}, fmt.Errorf("%w: it says that it goes from %s to %s", ErrUnreadable, g.Follows, g.Last)
	}
	return g, nil
}

// RecordedGaps are the recorded gaps that meets takes, in stream order.
func (l *Lake) RecordedGaps(ctx context.Context, meets func(follows, last change.Position) bool) ([]Gap, error) {
	var gaps []Gap
	for info, err := range l.store.List(ctx, gapsFolder, "") {
		if err != nil {
			return nil, fmt.Errorf("list the recorded gaps of %s: %w", l.url, err)
		}
		g, err := l.readGap(ctx, info.Key)
		if err != nil {
			return nil, fmt.Errorf("read a recorded gap: %s/%s: %w", l.url, info.Key, err)
		}
		if meets(g.Follows, g.Last) {
			gaps = append(gaps, g)
		}
	}
	return gaps, nil
}
