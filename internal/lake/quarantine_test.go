package lake_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// otherRows is a segment of the same boundary with other rows.
func otherRows(ref segment.Ref) segment.Ref {
	ref.Digest++
	return ref
}

// putAside moves segment i into quarantine.
func (x *testLake) putAside(i int) {
	x.t.Helper()
	x.delete(i)
	x.put(lake.QuarantineKey(x.refs[i]), object(x.t, x.refs[i]))
}

// replay does what a replay does with segment i, up to a step: the rows are
// stored, the messages removed.
func (x *testLake) replay(i int) []func() {
	return []func(){
		func() {
			if _, err := x.l.PutSegment(x.t.Context(), x.refs[i], object(x.t, x.refs[i])); err != nil {
				x.t.Error(err)
			}
		},
		func() {
			if err := x.l.RemoveQuarantine(x.t.Context(), x.refs[i]); err != nil {
				x.t.Error(err)
			}
		},
	}
}

// Whatever step a replay was broken off at, the lake is a whole chain with every
// row counted once.
func TestAReplayLeavesAWholeChainAtEachStep(t *testing.T) {
	x := wholeLake(t)
	rows := x.verify().Rows
	x.putAside(3)
	for step, do := range append([]func(){func() {}}, x.replay(3)...) {
		do()
		r := x.verify()
		if !r.OK() || r.Rows != rows || r.Objects != 8 || r.Chains[0].Objects != 8 {
			t.Errorf("after step %d: %+v", step, r)
		}
		if want := map[int]int64{1: 1}[step]; r.Replayed != want {
			t.Errorf("after step %d: %d objects beside their rows, want %d", step, r.Replayed, want)
		}
		if quarantined := r.Days[1].Quarantined; quarantined != map[int]int64{0: 1}[step] {
			t.Errorf("after step %d: %d segments count as quarantined", step, quarantined)
		}
		day, err := x.l.Day(t.Context(), x.refs[3].Day)
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := day.At(x.refs[3].First); !ok || e.Quarantined != (step == 0) {
			t.Errorf("after step %d: the day has %+v, %v", step, e, ok)
		}
	}
}

// stepping calls step before each thing that is listed and each footer read.
type stepping struct {
	lake.Store
	step func()
}

func (s *stepping) List(ctx context.Context, prefix, after string) iter.Seq2[lake.Info, error] {
	return func(yield func(lake.Info, error) bool) {
		s.step()
		for info, err := range s.Store.List(ctx, prefix, after) {
			if !yield(info, err) {
				return
			}
			s.step()
		}
		s.step()
	}
}

func (s *stepping) GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	s.step()
	return s.Store.GetRange(ctx, key, offset, length)
}

func (s *stepping) Head(ctx context.Context, key string) (lake.Info, error) {
	s.step()
	return s.Store.Head(ctx, key)
}

// A reader whose steps fall anywhere between those of a replay misses no link.
func TestNoReaderMissesALinkWhileItIsReplayed(t *testing.T) {
	for first := 0; ; first++ {
		x := wholeLake(t)
		x.putAside(3)
		x.putAside(4)
		rows := int64(15)
		moves := append(x.replay(3), x.replay(4)...)
		n := 0
		var mu sync.Mutex // the lister and the reader
		slow := &stepping{Store: x.store, step: func() {
			mu.Lock()
			defer mu.Unlock()
			if n++; n > first && len(moves) > 0 {
				next := moves[0]
				moves = moves[1:]
				next()
			}
		}}
		r, err := lake.Verify(t.Context(), lake.New("memory", slow), lake.Options{Concurrency: 1})
		if err != nil {
			t.Fatal(err)
		}
		if !r.OK() || r.Rows != rows || r.Chains[0].Objects != 8 {
			t.Fatalf("the replay began at step %d: %+v", first, r)
		}
		if len(moves) == 4 {
			return // the reader was done before it began
		}
	}
}

func TestQuarantineIsRemovedOnlyWhenItsRowsAreInTheLake(t *testing.T) {
	x := wholeLake(t)
	x.putAside(3)
	if err := x.l.RemoveQuarantine(t.Context(), x.refs[3]); err == nil || !strings.Contains(err.Error(), "not in the lake") {
		t.Errorf("removed without its rows: %v", err)
	}
	x.put(x.key(3), object(t, otherRows(x.refs[3])))
	if err := x.l.RemoveQuarantine(t.Context(), x.refs[3]); !errors.Is(err, lake.ErrConflict) {
		t.Errorf("removed beside other rows: %v", err)
	}
	if body, err := x.l.ReadQuarantine(t.Context(), x.refs[3]); err != nil || len(body) == 0 {
		t.Errorf("it is gone: %v", err)
	}
	x.put(x.key(3), object(t, x.refs[3]))
	for range 2 {
		if err := x.l.RemoveQuarantine(t.Context(), x.refs[3]); err != nil {
			t.Error(err)
		}
	}
	if _, err := x.l.ReadQuarantine(t.Context(), x.refs[3]); !errors.Is(err, lake.ErrNotFound) {
		t.Errorf("it is there: %v", err)
	}
}

func TestQuarantineIsListedByRange(t *testing.T) {
	x := wholeLake(t)
	x.putAside(2)
	x.putAside(3)
	x.putAside(6)
	all := func(_, _ change.Position) bool { return true }
	for name, tc := range map[string]struct {
		meets func(first, last change.Position) bool
		want  []int
	}{
		"all":  {all, []int{2, 3, 6}},
		"one":  {func(first, last change.Position) bool { return first == x.refs[3].First && last == x.refs[3].Last }, []int{3}},
		"none": {func(_, _ change.Position) bool { return false }, nil},
	} {
		refs, err := x.l.Quarantined(t.Context(), tc.meets)
		if err != nil || len(refs) != len(tc.want) {
			t.Fatalf("%s: %+v, %v", name, refs, err)
		}
		for i, n := range tc.want {
			want := x.refs[n]
			if lake.Key(refs[i]) != lake.Key(want) || refs[i].Digest != want.Digest || refs[i].Follows != want.Follows || refs[i].Rows != want.Rows || refs[i].Lake != "memory" {
				t.Errorf("%s: %+v, want %+v", name, refs[i], want)
			}
		}
	}
	x.put(lake.QuarantineKey(x.refs[2]), []byte("rubbish"))
	refs, err := x.l.Quarantined(t.Context(), all)
	if len(refs) != 2 || !errors.Is(err, lake.ErrUnreadable) {
		t.Errorf("one cannot be read: %+v, %v", refs, err)
	}
}
