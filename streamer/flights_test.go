package streamer

import (
	"slices"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer/ring"
)

func TestFlightsShowWhatHasFinishedBehindOneThatHasNot(t *testing.T) {
	f := newFlights()
	for id := ring.SegmentID(1); id <= 5; id++ {
		f.add(id, segment.Ref{First: change.Position{Timeline: 1, LSN: change.LSN(id)}})
	}
	_, _, begun := f.list()
	ids := func(flights []Flight) (ids []int) {
		for _, x := range flights {
			ids = append(ids, int(x.Ref.First.LSN))
		}
		return ids
	}
	for _, step := range []struct {
		finish     ring.SegmentID
		now, ahead []int
	}{
		{4, []int{1, 2, 3, 5}, []int{4}},
		{2, []int{1, 3, 5}, []int{2, 4}},
		{2, []int{1, 3, 5}, []int{2, 4}},
		{1, []int{3, 5}, []int{4}},
		{3, []int{5}, nil},
		{5, nil, nil},
	} {
		f.finish(step.finish)
		now, ahead, since := f.list()
		if since.IsZero() != (len(now) == 0) || len(now) > 0 && since.Before(now[0].Since) {
			t.Errorf("after %s has finished: the first of %d has been that since %s", step.finish, len(now), since)
		}
		if first := step.now; len(first) > 0 && first[0] == 1 && !since.Equal(begun) || len(first) > 0 && first[0] != 1 && !since.After(begun) {
			t.Errorf("after %s has finished: the first has been that since %s, the one before since %s", step.finish, since, begun)
		}
		if !slices.Equal(ids(now), step.now) || !slices.Equal(ids(ahead), step.ahead) {
			t.Errorf("after %s has finished: %v in flight and %v ahead, want %v and %v", step.finish, ids(now), ids(ahead), step.now, step.ahead)
		}
		for _, x := range ahead {
			if x.Finished.IsZero() {
				t.Errorf("%s has no time at which it has finished", x.Ref.First)
			}
		}
	}
	if err := f.wait(t.Context()); err != nil {
		t.Errorf("nothing is in flight: %v", err)
	}
}

func TestFlightsRememberABoundedNumberAhead(t *testing.T) {
	f := newFlights()
	for id := ring.SegmentID(1); id <= 2*maxAhead; id++ {
		f.add(id, segment.Ref{})
		if id > 1 {
			f.finish(id)
		}
	}
	if _, ahead, _ := f.list(); len(ahead) != maxAhead {
		t.Errorf("%d are remembered, want %d", len(ahead), maxAhead)
	}
	f.remove(1)
	if now, ahead, _ := f.list(); len(now) > 0 || len(ahead) > 0 {
		t.Errorf("%d are in flight and %d ahead", len(now), len(ahead))
	}
}
