// Package tally counts row changes by table and operation, so that what a load
// has committed can be held against what the lake has.
package tally

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Kind is a table, schema-qualified as Postgres prints it, and an operation in
// the lake's words.
type Kind struct{ Table, Operation string }

// Counts are numbers of row changes; a kind that is missing has none.
type Counts map[Kind]int64

// Add adds other to c.
func (c Counts) Add(other Counts) {
	for k, n := range other {
		c[k] += n
	}
}

// Clone is a copy.
func (c Counts) Clone() Counts { return maps.Clone(c) }

// Total is the sum.
func (c Counts) Total() int64 {
	var sum int64
	for _, n := range c {
		sum += n
	}
	return sum
}

// Kinds are those of c and of the others, sorted.
func (c Counts) Kinds(others ...Counts) []Kind {
	all := maps.Clone(c)
	if all == nil {
		all = Counts{}
	}
	for _, o := range others {
		all.Add(o)
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b Kind) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Operation, b.Operation))
	})
}

// Differences has a line for each kind of which got has another number.
func (c Counts) Differences(got Counts) []string {
	var lines []string
	for _, k := range c.Kinds(got) {
		if c[k] != got[k] {
			lines = append(lines, fmt.Sprintf("%s %s: want %d rows, got %d (%+d)", k.Table, k.Operation, c[k], got[k], got[k]-c[k]))
		}
	}
	return lines
}
