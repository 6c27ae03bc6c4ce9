package replication

import (
	"reflect"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

const history4 = "1\t0/3000148\tno recovery target specified\n" +
	"\n# a comment\n" +
	"2\t0/5000000\tbefore 2000-01-01 00:00:00+00\n" +
	"  3  1/0   two\twords \n"

func TestHistoryKnowsTheTimelineOfAnLSN(t *testing.T) {
	h, err := ParseHistory(4, []byte(history4))
	if err != nil {
		t.Fatal(err)
	}
	want := History{Current: 4, Ancestors: []Ancestor{{1, 0x3000148}, {2, 0x5000000}, {3, 1 << 32}}}
	if !reflect.DeepEqual(h, want) {
		t.Fatalf("got %+v, want %+v", h, want)
	}
	for lsn, tl := range map[change.LSN]change.Timeline{
		0: 1, 0x3000147: 1, 0x3000148: 2, 0x4ffffff: 2, 0x5000000: 3, 0xffffffff: 3, 1 << 32: 4, 1 << 63: 4,
	} {
		if got := h.TimelineOf(lsn); got != tl {
			t.Errorf("%s: timeline %d, want %d", lsn, got, tl)
		}
	}
	if got := (History{Current: 1}).TimelineOf(5); got != 1 {
		t.Errorf("without ancestors: timeline %d", got)
	}
	// A server that was promoted twice at the same place wrote nothing on 2.
	twice, err := ParseHistory(3, []byte("1\t0/50\tx\n2\t0/50\tx\n"))
	if err != nil {
		t.Fatal(err)
	}
	for lsn, tl := range map[change.LSN]change.Timeline{0x4f: 1, 0x50: 3} {
		if got := twice.TimelineOf(lsn); got != tl {
			t.Errorf("%s: timeline %d, want %d", lsn, got, tl)
		}
	}
}

func TestHistoryKnowsWhereItHasLeftAnotherBranch(t *testing.T) {
	h := History{Current: 5, Ancestors: []Ancestor{{1, 0x100}, {4, 0x300}}} // 2 and 3 are of others
	at := func(tl change.Timeline, lsn change.LSN) change.Position {
		return change.Position{Timeline: tl, LSN: lsn}
	}
	for p, want := range map[change.Position]struct {
		from Ancestor
		next change.Timeline
	}{
		at(1, 0x100): {h.Ancestors[0], 4},
		at(1, 0x999): {h.Ancestors[0], 4},
		at(2, 0x80):  {h.Ancestors[0], 4}, // it left 1 before we did
		at(3, 0x200): {h.Ancestors[0], 4},
		at(4, 0x300): {h.Ancestors[1], 5},
	} {
		if from, next, ok := h.Left(p); !ok || from != want.from || next != want.next {
			t.Errorf("%s: left at %+v for %d, %t; want %+v", p, from, next, ok, want)
		}
	}
	for _, p := range []change.Position{at(1, 0xff), at(5, 0x999), at(6, 0x10)} {
		if from, _, ok := h.Left(p); ok {
			t.Errorf("%s: left at %+v", p, from)
		}
	}
	if end, ended := h.EndOf(4); !ended || end != 0x300 {
		t.Errorf("timeline 4 ended at %s, %t", end, ended)
	}
	if _, ended := h.EndOf(5); ended {
		t.Error("the present timeline has ended")
	}
	if got, want := h.Shift(7), (History{Current: 12, Ancestors: []Ancestor{{8, 0x100}, {11, 0x300}}}); !reflect.DeepEqual(got, want) {
		t.Errorf("shifted it is %+v, want %+v", got, want)
	}
}

func TestHistoryRefusesWhatIsNoHistory(t *testing.T) {
	for text, want := range map[string]string{
		"1\n":                    "switchpoint",
		"x\t0/1\tr\n":            "line 1",
		"1\t01\tr\n":             "LSN",
		"4\t0/1\tr\n":            "not before it",
		"2\t0/1\tr\n1\t0/2\tr\n": "does not follow",
		"1\t0/2\tr\n2\t0/1\tr\n": "does not follow",
	} {
		if _, err := ParseHistory(4, []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func FuzzParseHistory(f *testing.F) {
	f.Add([]byte(history4))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseHistory(4, b)
		if err != nil {
			return
		}
		last := change.Timeline(0)
		for _, a := range h.Ancestors {
			if got := h.TimelineOf(a.End); got <= a.Timeline {
				t.Fatalf("the switchpoint %s belongs to timeline %d", a.End, got)
			}
			if a.Timeline < last {
				t.Fatalf("timelines go back")
			}
			last = a.Timeline
		}
	})
}
