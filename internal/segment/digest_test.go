package segment_test

import (
	"encoding/binary"
	"testing"

	"github.com/cespare/xxhash/v2"
	"pgregory.net/rapid"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/internal/segment/segmenttest"
)

func digest(cs []change.Change) segment.Digest {
	h := segment.NewHasher()
	for i := range cs {
		h.Add(&cs[i])
	}
	return h.Sum()
}

// TestDigestIsThatOfTheDocumentedBytes holds the format: what is in lakes and
// in Temporal was computed with it.
func TestDigestIsThatOfTheDocumentedBytes(t *testing.T) {
	cs := segmenttest.NewMaker(0x1000).Mixed(500)
	var b []byte
	for _, c := range cs {
		b = binary.BigEndian.AppendUint32(b, uint32(c.Position.Timeline))
		b = binary.BigEndian.AppendUint64(b, uint64(c.Position.LSN))
		b = binary.BigEndian.AppendUint64(b, c.Position.Ordinal)
		b = binary.BigEndian.AppendUint32(b, c.XID)
		b = binary.BigEndian.AppendUint64(b, uint64(c.CommitTime))
		b = append(b, byte(c.Operation))
		if c.Relation != nil {
			b = binary.BigEndian.AppendUint64(b, c.Relation.Hash)
		} else {
			b = binary.BigEndian.AppendUint64(b, 0)
		}
		b = binary.BigEndian.AppendUint64(b, uint64(len(c.Raw)))
		b = append(b, c.Raw...)
	}
	if got, want := digest(cs), segment.Digest(xxhash.Sum64(b)); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

func TestDigestGoldenValues(t *testing.T) {
	one := change.Change{
		Position: change.Position{Timeline: 1, LSN: 0x16B374D848, Ordinal: 7}, XID: 731,
		CommitTime: 1709294400_000001, Operation: change.Insert, Relation: &change.Relation{Hash: 0x0123456789ABCDEF}, Raw: []byte("Iabc"),
	}
	for _, c := range []struct {
		cs   []change.Change
		want string
	}{
		{nil, "ef46db3751d8e999"}, // xxhash64 of nothing
		{[]change.Change{one}, "4510f59e5000b051"},
		{[]change.Change{one, {Operation: change.Message, Raw: []byte("M")}}, "7d1fb09072a7cb7f"},
	} {
		if got := digest(c.cs).String(); got != c.want {
			t.Errorf("%d changes: digest %s, want %s", len(c.cs), got, c.want)
		}
	}
}

func TestDigestSeesEveryHashedFieldAndNoOther(t *testing.T) {
	otherHash, otherName := *segmenttest.Relation(16500), *segmenttest.Relation(16500)
	otherHash.Hash++
	otherName.Name, otherName.Types = "renamed", nil
	for name, c := range map[string]struct {
		edit func(*change.Change)
		sees bool
	}{
		"timeline":             {func(c *change.Change) { c.Position.Timeline++ }, true},
		"commit LSN":           {func(c *change.Change) { c.Position.LSN++ }, true},
		"commit LSN, high":     {func(c *change.Change) { c.Position.LSN += 1 << 63 }, true},
		"ordinal":              {func(c *change.Change) { c.Position.Ordinal++ }, true},
		"ordinal, high":        {func(c *change.Change) { c.Position.Ordinal += 1 << 39 }, true},
		"xid":                  {func(c *change.Change) { c.XID++ }, true},
		"commit time":          {func(c *change.Change) { c.CommitTime++ }, true},
		"operation":            {func(c *change.Change) { c.Operation = change.Delete }, true},
		"relation version":     {func(c *change.Change) { c.Relation = &otherHash }, true},
		"no relation":          {func(c *change.Change) { c.Relation = nil }, true},
		"a bit of the message": {func(c *change.Change) { c.Raw = append([]byte{c.Raw[0] ^ 1}, c.Raw[1:]...) }, true},
		"a longer message":     {func(c *change.Change) { c.Raw = append(append([]byte{}, c.Raw...), 0) }, true},
		"a shorter message":    {func(c *change.Change) { c.Raw = c.Raw[:len(c.Raw)-1] }, true},
		"own LSN":              {func(c *change.Change) { c.LSN += 99 }, false},
		"time of reading":      {func(c *change.Change) { c.Received += 99 }, false},
		"joined":               {func(c *change.Change) { c.Joined = !c.Joined }, false},
		"type facts":           {func(c *change.Change) { c.Relation = &otherName }, false},
		"a copy of all":        {func(c *change.Change) { c.Raw = append([]byte{}, c.Raw...) }, false},
	} {
		m := segmenttest.NewMaker(0x1000)
		rel := segmenttest.Relation(16500)
		var cs []change.Change
		for i := range 3 {
			cs = append(cs, m.Change(change.Insert, rel, segmenttest.Raw('I', 20, i)))
		}
		before := digest(cs)
		c.edit(&cs[1])
		if saw := digest(cs) != before; saw != c.sees {
			t.Errorf("%s: a difference is seen: %v, want %v", name, saw, c.sees)
		}
	}
}

func TestDigestSeesOrderLossAndRepetition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cs := segmenttest.NewMaker(0x1000).Mixed(rapid.IntRange(2, 40).Draw(t, "n"))
		whole := digest(cs)
		i := rapid.IntRange(0, len(cs)-2).Draw(t, "at")
		swapped := append([]change.Change{}, cs...)
		swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
		lost := append(append([]change.Change{}, cs[:i]...), cs[i+1:]...)
		twice := append(append([]change.Change{}, cs[:i+1]...), cs[i:]...)
		for name, other := range map[string][]change.Change{"swapped": swapped, "lost": lost, "twice": twice} {
			if digest(other) == whole {
				t.Fatalf("change %d of %d %s: the same digest", i, len(cs), name)
			}
		}
	})
}

// TestDigestSeesWhereAMessageEnds moves a byte from one message to
// the next: the lengths are hashed too.
func TestDigestSeesWhereAMessageEnds(t *testing.T) {
	at := func(a, b string) segment.Digest {
		return digest([]change.Change{{Operation: change.Message, Raw: []byte(a)}, {Operation: change.Message, Raw: []byte(b)}})
	}
	if at("Mab", "Mc") == at("Ma", "bMc") {
		t.Error("the same digest")
	}
}

func TestDigestCanBeAskedAtAnyTimeAndCountsWhatItTook(t *testing.T) {
	cs := segmenttest.NewMaker(0x1000).Mixed(200)
	h := segment.NewHasher()
	var bytes int64
	for i := range cs {
		h.Add(&cs[i])
		bytes += int64(len(cs[i].Raw))
		if h.Rows() != int64(i+1) || h.Bytes() != bytes {
			t.Fatalf("after %d changes: %d rows, %d bytes, want %d bytes", i+1, h.Rows(), h.Bytes(), bytes)
		}
		if h.Sum() != digest(cs[:i+1]) || h.Sum() != h.Sum() {
			t.Fatalf("after %d changes the digest is not that of them", i+1)
		}
	}
}

func TestHasherKeepsNothingOfAChange(t *testing.T) {
	c := segmenttest.NewMaker(0x1000).Mixed(1)[0]
	c.Raw = append([]byte{}, c.Raw...)
	h := segment.NewHasher()
	h.Add(&c)
	before := h.Sum()
	for i := range c.Raw {
		c.Raw[i] = 0
	}
	if h.Sum() != before {
		t.Error("the digest changed with the caller's memory")
	}
	if n := testing.AllocsPerRun(100, func() { h.Add(&c) }); n != 0 {
		t.Errorf("%v allocations for a change", n)
	}
}

func TestDigestTextComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := segment.Digest(rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 255)).Draw(t, "digest"))
		text, err := d.MarshalText()
		if err != nil || len(text) != 16 {
			t.Fatalf("%q, %v", text, err)
		}
		var back segment.Digest
		if err := back.UnmarshalText(text); err != nil || back != d {
			t.Fatalf("%s came back as %s, %v", d, back, err)
		}
	})
}

func FuzzParseDigest(f *testing.F) {
	f.Add("ef46db3751d8e999")
	f.Add("0000000000000000")
	f.Add("EF46DB3751D8E999")
	f.Add("+f46db3751d8e999")
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := segment.ParseDigest(s); err == nil && d.String() != s {
			t.Errorf("%q is taken for %s", s, d)
		}
	})
}
