package lake

import (
	"context"
	"errors"
	"maps"
	"slices"
)

// aside is one object in quarantine. A replay stores the rows of such an object
// in the folder of its day and removes it then, so the two may stand side by
// side: they are one link of the chain, and the rows are what counts.
type aside struct {
	info  Info
	parts KeyParts
	meta  Metadata
	// err is why meta could not be read.
	err error
	// rows is what the object with the same boundary in the day's folder says
	// of itself, nil if none was seen.
	rows *Metadata
}

// rowsKey is where a replay puts the rows.
func (p KeyParts) rowsKey() string {
	p.Quarantined = false
	return p.Key()
}

// expect notes that an object in quarantine was listed. All of them are, before
// the folders of the days: what a replay moves meanwhile stands in its new place
// before it is gone from the old one, so it is seen in one of the two.
func (v *verifier) expect(info Info) {
	parts, err := ParseKey(info.Key)
	if err != nil || !parts.Quarantined {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asides[parts.rowsKey()] = &aside{info: info, parts: parts}
}

// aside is the object in quarantine with the given boundary, nil if there is
// none. Callers hold mu.
func (v *verifier) aside(parts KeyParts) *aside {
	if len(v.asides) == 0 {
		return nil // as in most lakes
	}
	return v.asides[parts.rowsKey()]
}

// settle sorts in what is in quarantine, once everything was read.
func (v *verifier) settle(ctx context.Context) error {
	for _, key := range slices.Sorted(maps.Keys(v.asides)) {
		a := v.asides[key]
		gone := errors.Is(a.err, ErrNotFound)
		switch {
		case a.rows != nil && gone:
			// It was moved after it was listed.
		case a.rows != nil && a.err == nil && *a.rows == a.meta:
			v.report.Replayed++
		case gone:
			if err := v.moved(ctx, a); err != nil {
				return err
			}
		default:
			v.sortIn(a.info, a.parts, a.meta, a.err)
		}
	}
	return nil
}

// moved looks for an object that was listed in quarantine and is gone, and was
// not yet in its day's folder when that was listed.
func (v *verifier) moved(ctx context.Context, a *aside) error {
	parts := a.parts
	parts.Quarantined = false
	var info Info
	var m Metadata
	err := patiently(ctx, func() (err error) {
		if info, err = v.lake.store.Head(ctx, parts.Key()); err != nil {
			return err
		}
		m, err = v.lake.readMetadata(ctx, info)
		return err
	})
	switch {
	case errors.Is(err, ErrNotFound):
		v.sortIn(a.info, a.parts, a.meta, a.err)
	case err != nil && !damaged(err):
		return err
	default:
		v.sortIn(info, parts, m, err)
	}
	return nil
}
