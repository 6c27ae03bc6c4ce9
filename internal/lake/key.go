package lake

import (
	"fmt"
	"strings"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

const (
	suffix           = ".zstd.parquet"
	quarantineFolder = "_quarantine/"
	recordsFolder    = "_tidemark/"
	gapsFolder       = recordsFolder + "gaps/"
	// divergencesFolder holds Divergences.
	divergencesFolder = recordsFolder + "divergences/"
)

// Key is where a segment's object lies: its UTC commit day's folder, then its
// first and last position. Since positions have a fixed width, the keys of a
// day are in stream order.
func Key(ref segment.Ref) string {
	return ref.Day.Path() + "/" + ref.First.String() + "_" + ref.Last.String() + suffix
}

// QuarantineKey is where a segment's raw messages lie if no decoder understands
// them.
func QuarantineKey(ref segment.Ref) string { return quarantineFolder + Key(ref) }

// KeyParts is what a key says.
type KeyParts struct {
	Day         change.Day
	First, Last change.Position
	Quarantined bool
}

// Key is the key that the parts make up.
func (p KeyParts) Key() string {
	ref := segment.Ref{Day: p.Day, First: p.First, Last: p.Last}
	if p.Quarantined {
		return QuarantineKey(ref)
	}
	return Key(ref)
}

// ParseKey reads what Key and QuarantineKey make, and nothing else.
func ParseKey(key string) (KeyParts, error) {
	var p KeyParts
	bad := func() (KeyParts, error) {
		return KeyParts{}, fmt.Errorf("parse key %q: want YYYY/MM/DD/<first>_<last>%s", key, suffix)
	}
	rest, quarantined := strings.CutPrefix(key, quarantineFolder)
	p.Quarantined = quarantined
	const dayLen = len("YYYY/MM/DD")
	if len(rest) != dayLen+1+change.PositionLen+1+change.PositionLen+len(suffix) {
		return bad()
	}
	var err error
	if p.Day, err = change.ParseDay(strings.ReplaceAll(rest[:dayLen], "/", "-")); err != nil {
		return bad()
	}
	name := rest[dayLen+1:]
	if p.First, err = change.ParsePosition(name[:change.PositionLen]); err != nil {
		return bad()
	}
	if p.Last, err = change.ParsePosition(name[change.PositionLen+1 : 2*change.PositionLen+1]); err != nil {
		return bad()
	}
	// Making the key again also checks the separators and the suffix.
	if p.First.IsZero() || p.Last.Less(p.First) || p.Key() != key {
		return bad()
	}
	return p, nil
}
