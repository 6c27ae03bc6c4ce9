package lake

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// Entry is one object of a day, by its key.
type Entry struct {
	First, Last change.Position
	Key         string
	// Bytes is the object's size.
	Bytes int64
	// Quarantined says that the object holds raw messages.
	Quarantined bool
}

// DayIndex is one listing of a day's objects. It does not change.
type DayIndex struct {
	// entries are sorted by First, then Last, then segments before quarantined
	// ones.
	entries []Entry
	// reach[i] is the index of the entry with the greatest Last among
	// entries[:i+1].
	reach []int
}

// Day lists a UTC commit day's segments and quarantined segments. Objects that
// are not Tidemark's are passed over. Memory: about 200 bytes per object.
func (l *Lake) Day(ctx context.Context, day change.Day) (*DayIndex, error) {
	var d DayIndex
	// Quarantine first: a replay removes from there what it has stored in the
	// folder of the day.
	for _, folder := range []string{quarantineFolder, ""} {
		for info, err := range l.store.List(ctx, folder+day.Path()+"/", "") {
			if err != nil {
				return nil, fmt.Errorf("list day %s of the lake: %w", day, err)
			}
			parts, err := ParseKey(info.Key)
			if err != nil {
				continue
			}
			d.entries = append(d.entries, Entry{
				First: parts.First, Last: parts.Last, Key: info.Key,
				Bytes: info.Size, Quarantined: parts.Quarantined,
			})
		}
	}
	slices.SortFunc(d.entries, func(a, b Entry) int {
		return cmp.Or(a.First.Compare(b.First), a.Last.Compare(b.Last), cmp.Compare(a.Key, b.Key))
	})
	best := 0
	for i, e := range d.entries {
		if d.entries[best].Last.Less(e.Last) {
			best = i
		}
		d.reach = append(d.reach, best)
	}
	return &d, nil
}

// Entries are all objects of the day, sorted by First. Not to be changed.
func (d *DayIndex) Entries() []Entry { return d.entries }

// At gives the object that begins at first.
func (d *DayIndex) At(first change.Position) (Entry, bool) {
	i := d.from(first)
	if i < len(d.entries) && d.entries[i].First == first {
		return d.entries[i], true
	}
	return Entry{}, false
}

// Across gives an object that p lies inside of without beginning it: First < p
// <= Last.
func (d *DayIndex) Across(p change.Position) (Entry, bool) {
	i := d.from(p)
	if i == 0 {
		return Entry{}, false
	}
	e := d.entries[d.reach[i-1]]
	if e.Last.Less(p) {
		return Entry{}, false
	}
	return e, true
}

// from is the index of the first entry that begins at p or after.
func (d *DayIndex) from(p change.Position) int {
	return sort.Search(len(d.entries), func(i int) bool { return !d.entries[i].First.Less(p) })
}
