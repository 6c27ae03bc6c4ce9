package operator

import (
	"fmt"
	"strings"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// Bound is one end of a Range: a position, or an LSN on whichever timeline. The
// zero Bound is none.
type Bound struct {
	position change.Position
	lsn      change.LSN
	set      bool
}

// ParseBound reads a position, or an LSN as Postgres prints it. Empty is none.
func ParseBound(text string) (Bound, error) {
	if text == "" {
		return Bound{}, nil
	}
	if strings.Contains(text, "/") {
		lsn, err := change.ParseLSN(text)
		if err == nil {
			return Bound{lsn: lsn, set: true}, nil
		}
	} else if p, err := change.ParsePosition(text); err == nil {
		return Bound{position: p, set: true}, nil
	}
	return Bound{}, fmt.Errorf("%q is neither an LSN such as 16/B374D848 nor a position such as %s", text, change.Position{Timeline: 1, LSN: 0x16B374D848})
}

// compare orders a position and the bound.
func (b Bound) compare(p change.Position) int {
	if !b.position.IsZero() {
		return p.Compare(b.position)
	}
	switch {
	case p.LSN < b.lsn:
		return -1
	case p.LSN > b.lsn:
		return 1
	}
	return 0
}

// Range is a part of the stream, its ends included. The zero Range is all of it.
type Range struct{ From, To Bound }

// Meets says whether the range holds anything from first to last.
func (r Range) Meets(first, last change.Position) bool {
	return (!r.From.set || r.From.compare(last) >= 0) && (!r.To.set || r.To.compare(first) <= 0)
}

// Empty says that nothing can lie in the range, as far as that can be told.
func (r Range) Empty() bool {
	if !r.From.set || !r.To.set {
		return false
	}
	if !r.From.position.IsZero() {
		return r.To.compare(r.From.position) > 0
	}
	if !r.To.position.IsZero() {
		return r.From.compare(r.To.position) < 0
	}
	return r.To.lsn < r.From.lsn
}
