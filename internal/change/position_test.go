package change_test

import (
	"cmp"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

func TestPositionTextIsFixedWidthUpperCaseHexadecimal(t *testing.T) {
	for _, c := range []struct {
		p    change.Position
		text string
	}{
		{change.Position{}, "00000000-0000000000000000-0000000000"},
		{change.Position{Timeline: 1, LSN: 0x16B374D848, Ordinal: 0}, "00000001-00000016B374D848-0000000000"},
		{change.Position{Timeline: 0xABCDEF01, LSN: 0xFEDCBA9876543210, Ordinal: 0x12345ABCDE}, "ABCDEF01-FEDCBA9876543210-12345ABCDE"},
		{change.Position{Timeline: math.MaxUint32, LSN: math.MaxUint64, Ordinal: change.MaxOrdinal}, "FFFFFFFF-FFFFFFFFFFFFFFFF-FFFFFFFFFF"},
	} {
		if got := c.p.String(); got != c.text || len(got) != change.PositionLen {
			t.Errorf("%+v: text %q, want %q", c.p, got, c.text)
		}
		if got, err := change.ParsePosition(c.text); err != nil || got != c.p {
			t.Errorf("parse %q: %+v, %v", c.text, got, err)
		}
	}
}

func TestOnePositionHasOneText(t *testing.T) {
	const right = "0000000A-00000016B374D848-0000000001"
	for _, s := range []string{
		"", "0", right[1:], right + "0", " " + right[1:], right[:len(right)-1] + " ",
		strings.ToLower(right), strings.ReplaceAll(right, "-", "_"),
		"0000000A000000016B374D848-0000000001", "0000000A-00000016B374D8480000000001x",
		"0000000G-00000016B374D848-0000000001", "+000000A-00000016B374D848-0000000001",
		"0000000A-0x000016B374D848-0000000001", "0000000A-00000016B374D848-00000_0001",
		"0000000A-00000016B374D848-000000000١",
	} {
		if p, err := change.ParsePosition(s); err == nil {
			t.Errorf("parse %q: taken as %s", s, p)
		} else if !strings.Contains(err.Error(), "TTTTTTTT") {
			t.Errorf("parse %q: the error %q does not say what is wanted", s, err)
		}
	}
}

func TestPositionsComeBackAndTextOrderIsStreamOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q := positions.Draw(t, "p"), positions.Draw(t, "q")
		back, err := change.ParsePosition(p.String())
		if err != nil || back != p {
			t.Fatalf("%s came back as %s, %v", p, back, err)
		}
		b, err := json.Marshal(map[string]change.Position{"at": p})
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]change.Position
		if err := json.Unmarshal(b, &m); err != nil || m["at"] != p {
			t.Fatalf("%s came back from JSON as %s, %v", b, m["at"], err)
		}
		if got, want := cmp.Compare(p.String(), q.String()), p.Compare(q); got != want {
			t.Fatalf("%s and %s: order of texts %d, of positions %d", p, q, got, want)
		}
		if p.Less(q) != (p.Compare(q) < 0) || p.Compare(q) != -q.Compare(p) || (p.Compare(q) == 0) != (p == q) {
			t.Fatalf("%s and %s: the order contradicts itself", p, q)
		}
	})
}

func TestPositionsAreOrderedByTimelineThenLSNThenOrdinal(t *testing.T) {
	at := func(tl change.Timeline, lsn change.LSN, n uint64) change.Position {
		return change.Position{Timeline: tl, LSN: lsn, Ordinal: n}
	}
	ordered := []change.Position{
		{}, at(1, 1, 9), at(1, 2, 0), at(1, 2, 1), at(1, 2, change.MaxOrdinal), at(1, 3, 0),
		at(1, 1<<40, 0), at(2, 0, 0), at(2, 1, 0), at(1<<31, 5, 5),
	}
	for i, p := range ordered {
		for j, q := range ordered {
			if got, want := p.Compare(q), cmp.Compare(i, j); got != want {
				t.Errorf("%s and %s: %d, want %d", p, q, got, want)
			}
		}
		if p.IsZero() != (i == 0) {
			t.Errorf("%s: IsZero is %v", p, p.IsZero())
		}
	}
}

func TestJustBeforeStandsBetweenTheTransactionsBelowAndTheFirstOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tl := change.Timeline(rapid.Uint32Range(1, math.MaxUint32).Draw(t, "timeline"))
		lsn := change.LSN(rapid.Uint64Range(1, math.MaxUint64).Draw(t, "lsn"))
		before := change.JustBefore(tl, lsn)
		if first := (change.Position{Timeline: tl, LSN: lsn}); !before.Less(first) {
			t.Fatalf("%s does not stand before %s", before, first)
		}
		// No transaction has so many changes that its last stands there.
		below := change.Position{Timeline: tl, LSN: lsn - 1, Ordinal: rapid.Uint64Range(0, change.MaxOrdinal-1).Draw(t, "ordinal")}
		if !below.Less(before) {
			t.Fatalf("%s does not stand before %s", below, before)
		}
		if back, err := change.ParsePosition(before.String()); err != nil || back != before {
			t.Fatalf("%s came back as %s, %v", before, back, err)
		}
	})
}

// positions draws mostly near ones, so that the later parts decide.
var positions = rapid.Custom(func(t *rapid.T) change.Position {
	return change.Position{
		Timeline: change.Timeline(rapid.OneOf(rapid.Uint32Range(0, 2), rapid.Uint32()).Draw(t, "timeline")),
		LSN:      change.LSN(rapid.OneOf(rapid.Uint64Range(0, 300), rapid.Uint64()).Draw(t, "lsn")),
		Ordinal:  rapid.OneOf(rapid.Uint64Range(0, 300), rapid.Uint64Range(0, change.MaxOrdinal)).Draw(t, "ordinal"),
	}
})

func FuzzParsePosition(f *testing.F) {
	f.Add("00000001-00000016B374D848-0000000000")
	f.Add("FFFFFFFF-FFFFFFFFFFFFFFFF-FFFFFFFFFF")
	f.Add("00000001-00000016b374d848-0000000000")
	f.Fuzz(func(t *testing.T, s string) {
		if p, err := change.ParsePosition(s); err == nil && p.String() != s {
			t.Errorf("%q is taken for %s", s, p)
		}
	})
}
