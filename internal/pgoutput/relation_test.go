package pgoutput

import (
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// The hash goes into digests, so it has to be the same on every connection, and
// from one release to the next.
func TestTheHashOfAVersionIsThatOfItsColumns(t *testing.T) {
	columns := func(edit func([]change.Column)) []change.Column {
		cs := []change.Column{{Name: "id", Type: 23, Modifier: -1, Key: true}, {Name: "v", Type: 1043, Modifier: 24}}
		if edit != nil {
			edit(cs)
		}
		return cs
	}
	hash := func(msg []byte) uint64 {
		t.Helper()
		rel, err := parseRelation(msg)
		if err != nil {
			t.Fatal(err)
		}
		return rel.Hash
	}
	first := hash(relation(16384, "a", 'd', columns(nil)...))
	want := xxhash.Sum64String("\x00\x00\x40\x00" + "id\x00" + "\x00\x00\x00\x17\xff\xff\xff\xff" + "v\x00" + "\x00\x00\x04\x13\x00\x00\x00\x18")
	if first != want || first != 0xbf5b3a14ba106fc2 {
		t.Errorf("the hash is %#x, want that of the documented bytes, %#x", first, want)
	}
	for name, c := range map[string]struct {
		msg  []byte
		sees bool
	}{
		"name":       {relation(16384, "b", 'd', columns(nil)...), false},
		"identity":   {relation(16384, "a", 'f', columns(nil)...), false},
		"key":        {relation(16384, "a", 'd', columns(func(cs []change.Column) { cs[1].Key = true })...), false},
		"OID":        {relation(16385, "a", 'd', columns(nil)...), true},
		"column":     {relation(16384, "a", 'd', columns(func(cs []change.Column) { cs[1].Name = "w" })...), true},
		"type":       {relation(16384, "a", 'd', columns(func(cs []change.Column) { cs[1].Type = 25 })...), true},
		"modifier":   {relation(16384, "a", 'd', columns(func(cs []change.Column) { cs[1].Modifier = 25 })...), true},
		"order":      {relation(16384, "a", 'd', columns(func(cs []change.Column) { cs[0], cs[1] = cs[1], cs[0] })...), true},
		"one fewer":  {relation(16384, "a", 'd', columns(nil)[:1]...), true},
		"no columns": {relation(16384, "a", 'd'), true},
	} {
		if (hash(c.msg) != first) != c.sees {
			t.Errorf("with another %s the hash differs: %v, want %v", name, !c.sees, c.sees)
		}
	}
}

func TestATableThatOnlyGotAnotherNameKeepsTheFactsOfItsTypes(t *testing.T) {
	described := 0
	f := NewFramer(FramerConfig{
		TimelineOf: func(change.LSN) change.Timeline { return 1 },
		Describe: func(r *change.Relation) error {
			described++
			r.Types = []change.Type{{OID: 70000, Kind: change.KindEnum}}
			return nil
		},
	})
	feed(t, f, begin(10, 1, 1), relation(1, "a", 'd', twoColumns...), relation(1, "b", 'f', twoColumns...))
	rel := feed(t, f, row('I', 1).tuple('N', "1", nil)).Changes[0].Relation
	if described != 1 || rel.Name != "b" || rel.Identity != 'f' || len(rel.Types) != 1 {
		t.Errorf("described %d times, relation %+v", described, rel)
	}
}
