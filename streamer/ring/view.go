package ring

import (
	"iter"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// View is a contiguous run of changes. It stays valid and unchanged for as long
// as it is held, whatever the ring does meanwhile, and may be read by any
// number of goroutines; nobody may write to what it shows. Holding it holds its
// memory.
type View struct {
	// From and To are the numbers of the first change and of the one after the
	// last. From == To is an empty View, whose other fields are zero.
	From, To uint64
	// First and Last are the positions of the first and the last change.
	First, Last change.Position
	// Day is the UTC commit day of the first change.
	Day change.Day
	// Rows is To - From.
	Rows int
	// Bytes is the sum of the lengths of the raw messages.
	Bytes int64

	// pages hold exactly [From, To), with neighbours at either end.
	pages []*page
}

// Chunks iterates over the changes in order, a few hundred at a time. The
// slices are the ring's own memory, see View.
func (v View) Chunks() iter.Seq[[]change.Change] {
	return func(yield func([]change.Change) bool) {
		for i, p := range v.pages {
			from, to := max(v.From, p.first)-p.first, v.To-p.first
			if i+1 < len(v.pages) {
				to = v.pages[i+1].first - p.first
			}
			if !yield(p.changes[from:to:to]) {
				return
			}
		}
	}
}
