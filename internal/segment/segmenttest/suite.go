package segmenttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// patience bounds everything that must happen promptly.
const patience = time.Minute

// Factory makes a Source of pipeline Pipeline that stands to each of the given
// segments as its State says, and knows no other. The segments are in stream
// order, without gaps: first those that are Gone, then those that are Ready,
// then those that are NotYet; there can be none. What the Source needs to be
// cleaned up is for t.Cleanup.
type Factory func(t *testing.T, segments []Segment) segment.Source

// Run tests that a Source keeps the contract of segment.Source.
func Run(t *testing.T, source Factory) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Factory)
	}{
		{"every change comes as it is and in order", testComplete},
		{"one relation version is one Relation", testRelations},
		{"ten thousand relation versions pass", testManyRelations},
		{"large messages pass", testLarge},
		{"changes stay as they are until Close", testStable},
		{"a segment that cannot be had says why", testWhyNot},
		{"no rows are given for another boundary or digest", testOtherTicket},
		{"segments are fetched at the same time", testConcurrent},
		{"a Reader can be closed at any time and twice", testClose},
		{"a canceled context ends a fetch, and never with a short segment", testCancel},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, source) })
	}
}

// start is where the changes of the suite begin.
const start change.LSN = 0x1_0000_1000

// segments cuts changes into one segment for each state.
func segments(m *Maker, n int, states ...State) []Segment {
	follows := change.JustBefore(1, start)
	var out []Segment
	for _, s := range states {
		cs := m.Mixed(n)
		out = append(out, Segment{Ref: RefOf(follows, cs), Changes: cs, State: s})
		follows = cs[len(cs)-1].Position
	}
	return out
}

func one(cs []change.Change) []Segment {
	return []Segment{{Ref: RefOf(change.JustBefore(1, start), cs), Changes: cs}}
}

// ReadAll fetches a whole segment and closes the Reader when the test ends, so
// that the changes stay.
func ReadAll(ctx context.Context, t testing.TB, s segment.Source, ticket segment.Ticket) ([]change.Change, error) {
	t.Helper()
	r, err := s.Fetch(ctx, ticket)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close the reader: %v", err)
		}
	})
	return rest(r)
}

// rest reads r to its end.
func rest(r segment.Reader) ([]change.Change, error) {
	var all []change.Change
	for {
		cs, err := r.Next()
		switch {
		case err == nil && len(cs) == 0:
			return all, errors.New("Next gave neither changes nor an error")
		case err == nil:
			all = append(all, cs...)
		case errors.Is(err, io.EOF):
			if _, err := r.Next(); !errors.Is(err, io.EOF) {
				return all, fmt.Errorf("Next after io.EOF gave %v", err)
			}
			return all, nil
		default:
			return all, err
		}
	}
}

// Diff says in what got differs from want, and "" if it does not.
func Diff(got, want []change.Change) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d changes, want %d", len(got), len(want))
	}
	for i := range got {
		g, w := got[i], want[i]
		if !bytes.Equal(g.Raw, w.Raw) {
			return fmt.Sprintf("change %d, %s: its message of %d bytes differs from the %d it was made of", i, w.Position, len(g.Raw), len(w.Raw))
		}
		if g.Relation != w.Relation && !reflect.DeepEqual(g.Relation, w.Relation) {
			return fmt.Sprintf("change %d, %s: relation\n%+v, want\n%+v", i, w.Position, g.Relation, w.Relation)
		}
		g.Raw, w.Raw, g.Relation, w.Relation = nil, nil, nil, nil
		if !reflect.DeepEqual(g, w) {
			return fmt.Sprintf("change %d:\n%+v, want\n%+v", i, g, w)
		}
	}
	return ""
}

// mustRead reads a segment and compares it.
func mustRead(t *testing.T, s segment.Source, seg Segment) []change.Change {
	t.Helper()
	got, err := ReadAll(t.Context(), t, s, seg.Ref.Ticket())
	if err != nil {
		t.Fatalf("fetch: %v", err)
	}
	if d := Diff(got, seg.Changes); d != "" {
		t.Fatal(d)
	}
	return got
}

func testComplete(t *testing.T, source Factory) {
	for _, n := range []int{1, 2, 99, 10_000} {
		seg := one(NewMaker(start).Mixed(n))
		got := mustRead(t, source(t, seg), seg[0])
		h := segment.NewHasher()
		for i := range got {
			h.Add(&got[i])
		}
		ref := seg[0].Ref
		if h.Rows() != ref.Rows || h.Bytes() != ref.Bytes || h.Sum() != ref.Digest {
			t.Errorf("%d rows, %d bytes, digest %s; want %d, %d, %s", h.Rows(), h.Bytes(), h.Sum(), ref.Rows, ref.Bytes, ref.Digest)
		}
	}
}

func testRelations(t *testing.T, source Factory) {
	seg := one(NewMaker(start).Mixed(10_000))
	seen := map[uint64]*change.Relation{}
	for _, c := range mustRead(t, source(t, seg), seg[0]) {
		if c.Relation == nil {
			continue
		}
		if r := seen[c.Relation.Hash]; r != nil && r != c.Relation {
			t.Fatalf("change %s: a second copy of relation %s", c.Position, r.Name)
		}
		seen[c.Relation.Hash] = c.Relation
	}
}

func testManyRelations(t *testing.T, source Factory) {
	m := NewMaker(start)
	var cs []change.Change
	for i := range 10_000 {
		cs = append(cs, m.Change(change.Insert, Relation(20_000+uint32(i)), Raw('I', 20, i)))
	}
	seg := one(cs)
	mustRead(t, source(t, seg), seg[0])
}

func testLarge(t *testing.T, source Factory) {
	m := NewMaker(start)
	rel := Relation(16500)
	var cs []change.Change
	// Around one and two mebibytes, where a batch of the data plane ends.
	for i, size := range []int{1, 1<<20 - 1, 1 << 20, 1<<20 + 1, 5, 2 << 20, 2<<20 + 1, 7 << 20, 1} {
		cs = append(cs, m.Change(change.Insert, rel, Raw('I', size, i)))
	}
	seg := one(cs)
	mustRead(t, source(t, seg), seg[0])
}

func testStable(t *testing.T, source Factory) {
	segs := segments(NewMaker(start), 3000, Ready, Ready, Ready)
	s := source(t, segs)
	var got [][]change.Change
	for _, seg := range segs {
		got = append(got, mustRead(t, s, seg))
	}
	for i := range segs {
		if d := Diff(got[i], segs[i].Changes); d != "" {
			t.Errorf("segment %d after others were read: %s", i, d)
		}
	}
}

// wantOnly checks that err is one of want, and none of the other two.
func wantOnly(t *testing.T, err error, want ...error) {
	t.Helper()
	var is []error
	for _, e := range []error{segment.ErrNotYet, segment.ErrGone, segment.ErrUnknown} {
		if errors.Is(err, e) {
			is = append(is, e)
		}
	}
	if len(is) != 1 || !slices.Contains(want, is[0]) {
		t.Errorf("error %v, want one of %v", err, want)
	}
}

func testWhyNot(t *testing.T, source Factory) {
	segs := segments(NewMaker(start), 50, Gone, Ready, NotYet)
	s := source(t, segs)
	for _, seg := range segs {
		got, err := ReadAll(t.Context(), t, s, seg.Ref.Ticket())
		switch seg.State {
		case Ready:
			if err != nil {
				t.Errorf("the segment between them: %v", err)
			}
			continue
		case Gone:
			wantOnly(t, err, segment.ErrGone)
		case NotYet:
			wantOnly(t, err, segment.ErrNotYet)
		}
		if len(got) > 0 {
			t.Errorf("%d changes before %v", len(got), err)
		}
	}
	foreign := segs[1].Ref.Ticket()
	foreign.Pipeline = "another"
	_, err := ReadAll(t.Context(), t, s, foreign)
	wantOnly(t, err, segment.ErrUnknown)
}

func testOtherTicket(t *testing.T, source Factory) {
	segs := segments(NewMaker(start), 50, Ready, Ready)
	s := source(t, segs)
	first, second := segs[0].Ref.Ticket(), segs[1].Ref.Ticket()
	for name, ticket := range map[string]segment.Ticket{
		"another digest":       {Pipeline: Pipeline, First: first.First, Last: first.Last, Digest: first.Digest + 1},
		"a shorter segment":    {Pipeline: Pipeline, First: first.First, Last: segs[0].Changes[20].Position, Digest: first.Digest},
		"two segments as one":  {Pipeline: Pipeline, First: first.First, Last: second.Last, Digest: first.Digest},
		"a later first change": {Pipeline: Pipeline, First: segs[0].Changes[20].Position, Last: first.Last, Digest: first.Digest},
	} {
		got, err := ReadAll(t.Context(), t, s, ticket)
		if len(got) > 0 || err == nil {
			t.Errorf("%s: %d changes and error %v, want an error", name, len(got), err)
			continue
		}
		wantOnly(t, err, segment.ErrNotYet, segment.ErrGone, segment.ErrUnknown)
	}
}

func testConcurrent(t *testing.T, source Factory) {
	segs := segments(NewMaker(start), 2000, Ready, Ready, Ready, Ready)
	s := source(t, segs)
	var wg sync.WaitGroup
	for i := range 12 {
		seg := segs[i%len(segs)]
		wg.Go(func() {
			got, err := ReadAll(t.Context(), t, s, seg.Ref.Ticket())
			if err != nil {
				t.Errorf("fetch: %v", err)
			} else if d := Diff(got, seg.Changes); d != "" {
				t.Error(d)
			}
		})
	}
	wg.Wait()
}

func testClose(t *testing.T, source Factory) {
	seg := one(NewMaker(start).Mixed(20_000))
	s := source(t, seg)
	for _, reads := range []int{0, 1, 1000} {
		r, err := s.Fetch(t.Context(), seg[0].Ref.Ticket())
		if err != nil {
			t.Fatalf("fetch: %v", err)
		}
		for range reads {
			if _, err := r.Next(); err != nil {
				break
			}
		}
		for range 2 {
			if err := r.Close(); err != nil {
				t.Errorf("close after %d reads: %v", reads, err)
			}
		}
	}
	mustRead(t, s, seg[0])
}

// testCancel allows a Source to hand out what it holds already. What it may not
// do is hang, or end with io.EOF before the last change.
func testCancel(t *testing.T, source Factory) {
	m := NewMaker(start)
	var cs []change.Change
	rel := Relation(16500)
	for i := range 4000 {
		cs = append(cs, m.Change(change.Insert, rel, Raw('I', 10_000, i)))
	}
	seg := one(cs)
	s := source(t, seg)

	for _, before := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if before {
			cancel()
		}
		var got []change.Change
		ended := make(chan error, 1)
		go func() {
			// The reader is closed before the answer is given: who counts the open
			// ones then counts none.
			ended <- func() error {
				r, err := s.Fetch(ctx, seg[0].Ref.Ticket())
				if err != nil {
					return err
				}
				defer r.Close()
				first, err := r.Next()
				cancel()
				if err != nil {
					return err
				}
				got, err = rest(r)
				got = append(first, got...)
				return err
			}()
		}()
		select {
		case err := <-ended:
			if err == nil && len(got) != len(cs) {
				t.Errorf("canceled: %d changes of %d, and no error", len(got), len(cs))
			}
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("canceled: error %v is not context.Canceled", err)
			}
		case <-time.After(patience):
			t.Fatalf("the fetch goes on %s after it was canceled", patience)
		}
	}
}
