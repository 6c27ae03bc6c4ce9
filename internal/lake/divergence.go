package lake

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// Divergence records that a failover has abandoned a branch of history on which
// rows were uploaded: the database has lost them, and the lake keeps them. What
// stands wholly in its range is no part of the chain; an object that begins
// before it and reaches into it is, since it holds rows that have survived.
type Divergence struct {
	Pipeline string `json:"pipeline"`
	SystemID string `json:"system_id"`
	// A position p is of the abandoned branch if After < p <= Through. After is
	// just before the switchpoint on the timeline that was left there, Through
	// just before it on the one that went on; nothing ever stands at either.
	After   change.Position `json:"after"`
	Through change.Position `json:"through"`
	// Objects and Rows count what lay in the lake beyond After when this was
	// recorded, and Keys names the first of the objects. Rows counts whole
	// objects: of one that begins before the switchpoint only some are lost.
	Objects int64    `json:"objects"`
	Rows    int64    `json:"rows"`
	Keys    []string `json:"keys,omitempty"`
	// Segments counts the recorded segments that were given up unfinished.
	Segments int64 `json:"segments"`
	// Reason says in a sentence what happened, for people.
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// MaxDivergenceKeys bounds Divergence.Keys.
const MaxDivergenceKeys = 100

// Key is where the divergence is recorded.
func (d Divergence) Key() string {
	return divergencesFolder + d.After.String() + "_" + d.Through.String() + ".json"
}

// Covers says whether p is of the abandoned branch.
func (d Divergence) Covers(p change.Position) bool {
	return d.After.Less(p) && !d.Through.Less(p)
}

// Divergences are recorded divergences, in stream order.
type Divergences []Divergence

// Over gives the divergence whose branch p is of.
func (ds Divergences) Over(p change.Position) (Divergence, bool) {
	for _, d := range ds {
		if d.Covers(p) {
			return d, true
		}
	}
	return Divergence{}, false
}

// Cover says whether p is of an abandoned branch.
func (ds Divergences) Cover(p change.Position) bool {
	_, ok := ds.Over(p)
	return ok
}

// parseDivergenceKey reads what Divergence.Key makes.
func parseDivergenceKey(key string) (Divergence, error) {
	var d Divergence
	var err error
	if d.After, d.Through, err = parseRange(divergencesFolder, key); err != nil || d.Key() != key {
		return Divergence{}, fmt.Errorf("parse key %q: want %s<after>_<through>.json", key, divergencesFolder)
	}
	return d, nil
}

// RecordDivergence writes a divergence down. That one of the same range is
// recorded already is success, so a call whose reply was lost can be repeated.
func (l *Lake) RecordDivergence(ctx context.Context, d Divergence) error {
	if d.Pipeline == "" || d.SystemID == "" || d.After.Timeline >= d.Through.Timeline || d.After.LSN != d.Through.LSN {
		return fmt.Errorf("record a divergence: pipeline %q, system %q, after %s through %s is not one", d.Pipeline, d.SystemID, d.After, d.Through)
	}
	err := recordOnce(ctx, l, d.Key(), d, l.readDivergence)
	if err != nil {
		return fmt.Errorf("record a divergence: %w", err)
	}
	return nil
}

// readDivergence reads a recorded divergence. What it says must agree with its
// key.
func (l *Lake) readDivergence(ctx context.Context, key string) (Divergence, error) {
	want, err := parseDivergenceKey(key)
	if err != nil {
		return Divergence{}, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	d, err := readLink[Divergence](ctx, l, key)
	if err != nil {
		return Divergence{}, err
	}
	if d.After != want.After || d.Through != want.Through {
		return Divergence{}, fmt.Errorf("%w: it says that it goes from %s to %s", ErrUnreadable, d.After, d.Through)
	}
	return d, nil
}

// Divergences are the recorded divergences in stream order.
func (l *Lake) Divergences(ctx context.Context) (Divergences, error) {
	all, err := readAll(ctx, l, divergencesFolder, l.readDivergence)
	if err != nil {
		return nil, fmt.Errorf("read the recorded divergences: %w", err)
	}
	slices.SortFunc(all, func(a, b Divergence) int { return a.After.Compare(b.After) })
	return all, nil
}
