package lake

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// The walk against a dumb model: mark for every change how many objects hold
// it. Whatever ranges the objects have, the changes that the findings call
// missing are those that no object holds, up to the ack; and an overlap or
// duplicate is reported if and only if some change is in two objects.
func TestTheChainAgreesWithCountingEveryChange(t *testing.T) {
	const changes = 20
	// Change -1 is the head.
	at := func(i int) change.Position {
		if i < 0 {
			return change.JustBefore(1, 0x1000)
		}
		return change.Position{Timeline: 1, LSN: 0x1000 + change.LSN(i/3), Ordinal: uint64(i % 3)}
	}
	rapid.Check(t, func(t *rapid.T) {
		acked := rapid.IntRange(-1, changes-1).Draw(t, "acked")
		held := make([]int, changes)
		head, ack := at(-1), at(acked)
		check := chainCheck{head: &head, acked: &ack}
		if rapid.Bool().Draw(t, "whole") {
			// Begin with a chain without a fault, so that most of it is one.
			for from := 0; from < changes; {
				to := min(changes-1, from+rapid.IntRange(0, 4).Draw(t, "length"))
				if rapid.IntRange(0, 9).Draw(t, "kept") > 0 {
					check.links = append(check.links, linkOf(at(from), at(to), at(from-1)))
					hold(held, from, to)
				}
				from = to + 1
			}
		}
		for range rapid.IntRange(0, 4).Draw(t, "more") {
			from := rapid.IntRange(0, changes-1).Draw(t, "from")
			to := rapid.IntRange(from, changes-1).Draw(t, "to")
			check.links = append(check.links, linkOf(at(from), at(to), at(from-1)))
			hold(held, from, to)
		}
		check.links = rapid.Permutation(check.links).Draw(t, "order")

		var missing, wantMissing []int
		doubles := 0
		check.report = func(f Finding) {
			switch f.Kind {
			case KindOverlap, KindDuplicate:
				doubles++
			case KindHead, KindGap, KindTail:
				for i := range changes {
					if f.After.Less(at(i)) && !f.Through.Less(at(i)) {
						missing = append(missing, i)
					}
				}
			default:
				t.Fatalf("%+v", f)
			}
		}
		check.run()
		for i, n := range held {
			if n == 0 && i <= acked {
				wantMissing = append(wantMissing, i)
			}
		}
		if !slices.Equal(missing, wantMissing) {
			t.Fatalf("missing %v, want %v (held %v, acked %d)", missing, wantMissing, held, acked)
		}
		if want := slices.Max(held) > 1; want != (doubles > 0) {
			t.Fatalf("%d overlaps (held %v)", doubles, held)
		}
	})
}

func linkOf(first, last, follows change.Position) link {
	return link{parts: KeyParts{First: first, Last: last}, follows: follows, known: true}
}

func hold(held []int, from, to int) {
	for i := from; i <= to; i++ {
		held[i]++
	}
}

// Of two objects that begin at the same position, the one that the chain goes
// on from is taken, so that one wrong object is one finding.
func TestOneWrongObjectIsOneFinding(t *testing.T) {
	at := func(i uint64) change.Position { return change.Position{Timeline: 1, LSN: 1, Ordinal: i} }
	chain := []link{linkOf(at(1), at(3), at(0)), linkOf(at(4), at(6), at(3)), linkOf(at(7), at(9), at(6)), linkOf(at(10), at(12), at(9))}
	for _, wrong := range []link{
		linkOf(at(4), at(5), at(3)), linkOf(at(4), at(8), at(3)), linkOf(at(5), at(8), at(4)), linkOf(at(1), at(12), at(0)),
		linkOf(at(2), at(3), at(1)), linkOf(at(10), at(11), at(9)), linkOf(at(4), at(6), at(3)),
	} {
		var found []Finding
		head, acked := at(0), at(12)
		check := chainCheck{
			links: append(slices.Clone(chain), wrong), head: &head, acked: &acked,
			report: func(f Finding) { found = append(found, f) },
		}
		check.run()
		if len(found) != 1 || found[0].Key != wrong.key() {
			t.Errorf("%s to %s: %+v", wrong.first(), wrong.last(), found)
		}
	}
}
