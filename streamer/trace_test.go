package streamer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/pgtest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer/ring"
)

// steps is a Tracer that keeps what it is told.
type steps struct {
	mu   sync.Mutex
	list []Step
}

func (s *steps) Traced(step Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, step)
}

// of gives the steps of the segment that begins at first, in order.
func (s *steps) of(first change.Position) []Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Step
	for _, step := range s.list {
		if step.Ref.First == first {
			list = append(list, step)
		}
	}
	return list
}

// names are the names of steps, with what is said of them besides.
func names(list []Step) []string {
	var all []string
	for _, s := range list {
		name := string(s.Name)
		if s.Adopted != "" {
			name += " " + string(s.Adopted)
		}
		if s.Run != "" {
			name += fmt.Sprintf(" %s %s", s.Run, s.Ended)
		}
		all = append(all, name)
	}
	return all
}

func TestTheWayOfASegmentIsTold(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	seen := &steps{}
	w.tracer = seen
	id, err := w.lake.ReadIdentity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.temporal.hold(func(ref segment.Ref) bool { return ref.Follows == id.Head() })
	s := w.start()
	begun := time.Now()
	w.insert(25) // three segments of one transaction
	w.until("the two behind the first have finished", func() bool { return s.Status().Ring.FinishedSegments == 2 })
	w.temporal.hold(func(segment.Ref) bool { return false })
	w.caughtUp()
	refs, _ := w.temporal.uploaded()
	if len(refs) != 3 {
		t.Fatalf("%d segments were uploaded, want 3", len(refs))
	}
	var ways [3][]Step
	for i, ref := range refs {
		w.until("the segment has been acknowledged", func() bool { return len(seen.of(ref.First)) == 4 })
		ways[i] = seen.of(ref.First)
		if got := names(ways[i]); !slices.Equal(got, []string{"dispatch", "walk", "ack", "segment"}) {
			t.Fatalf("told of segment %s is %q", ref.First, got)
		}
		dispatch, walk, ack, whole := ways[i][0], ways[i][1], ways[i][2], ways[i][3]
		times := []time.Time{begun.Add(-time.Millisecond), whole.From, dispatch.From, dispatch.To, walk.From, walk.To, ack.From, ack.To, whole.To, time.Now()}
		if !slices.IsSortedFunc(times, time.Time.Compare) || !ack.From.Equal(walk.To) {
			t.Errorf("segment %s went its way at %v", ref.First, times)
		}
		if whole.Ref.Last != ref.Last || whole.Ref.Rows != ref.Rows || dispatch.Ref.Digest != ref.Digest {
			t.Errorf("told of is %+v, want %+v", whole.Ref, ref)
		}
	}
	// The first one held the walk of the others, and their transaction's end the
	// ack of all.
	for i, way := range ways {
		if walk := way[1]; i > 0 && walk.From.After(ways[0][1].From) || walk.To.Before(ways[0][1].From) {
			t.Errorf("segment %d walked from %s to %s, the first one had finished at %s", i, walk.From, walk.To, ways[0][1].From)
		}
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
}

func TestAnAdoptedSegmentIsToldOfByWhoSeesItThrough(t *testing.T) {
	for _, tc := range []struct {
		how Adoption
		// meanwhile is what happens between two streamers.
		meanwhile func(*world, segment.Ref)
		want      []string
	}{
		{AdoptedOpen, func(*world, segment.Ref) {}, []string{"dispatch open", "walk open", "ack open", "segment open"}},
		{AdoptedFinished, func(w *world, ref segment.Ref) { w.temporal.complete(ref) },
			[]string{"dispatch finished", "walk finished", "ack finished", "segment finished"}},
		{AdoptedBroken, func(w *world, ref segment.Ref) { w.temporal.terminate(ref) },
			[]string{"workflow broken 1 terminated", "dispatch broken", "walk broken", "ack broken", "segment broken"}},
		{AdoptedObject, func(w *world, ref segment.Ref) {
			w.stored(ref, w.lake.PutSegment)
			w.forget(ref)
		}, []string{"dispatch object", "walk object", "ack object", "segment object"}},
	} {
		t.Run(string(tc.how), func(t *testing.T) {
			w := newWorld(t, pgtest.Options{})
			w.temporal.since = time.Now().Add(-time.Hour).Truncate(time.Second)
			before, after := &steps{}, &steps{}
			w.tracer = before
			ref := w.leaveRunning(func() { w.insert(3) })
			if got := names(before.of(ref.First)); !slices.Equal(got, []string{"dispatch"}) {
				t.Errorf("a streamer that has left it tells of %q", got)
			}
			tc.meanwhile(w, ref)
			w.temporal.hold(func(segment.Ref) bool { return false })
			w.tracer = after
			w.start()
			w.caughtUp()
			w.until("the segment has been acknowledged", func() bool { return len(after.of(ref.First)) == len(tc.want) })
			way := after.of(ref.First)
			if got := names(way); !slices.Equal(got, tc.want) {
				t.Fatalf("told is %q, want %q", got, tc.want)
			}
			whole, dispatch := way[len(way)-1], way[len(way)-4]
			if known := tc.how != AdoptedObject; whole.From.Equal(w.temporal.since) != known || !known && whole.From.After(dispatch.From) {
				t.Errorf("it began at %s, its workflow at %s", whole.From, w.temporal.since)
			}
		})
	}
}

// ending is a Temporal that does something to the first run before it is awaited.
type ending struct {
	*fakeTemporal
	do   func(segment.Record)
	once sync.Once
}

func (e *ending) Await(ctx context.Context, rec segment.Record) (segment.Record, error) {
	e.once.Do(func() { e.do(rec) })
	return e.fakeTemporal.Await(ctx, rec)
}

func TestARunThatEndsWithoutCompletingIsTold(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(*world, segment.Record)
		want string
	}{
		"somebody terminates it": {func(w *world, rec segment.Record) { w.temporal.terminate(rec.Ref) }, "workflow 1 terminated"},
		"somebody deletes it":    {func(w *world, rec segment.Record) { w.forget(rec.Ref) }, "workflow 1 forgotten"},
		"somebody resets it": {func(w *world, rec segment.Record) {
			w.temporal.terminate(rec.Ref)
			_, _ = w.temporal.Restart(w.t.Context(), rec.Ref, segment.Location{Instance: "i1"})
		}, "workflow 1 closed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pgtest.Options{})
			seen := &steps{}
			w.tracer = seen
			w.tracker = &ending{fakeTemporal: w.temporal, do: func(rec segment.Record) {
				tc.end(w, rec)
				w.temporal.hold(func(segment.Ref) bool { return false })
			}}
			w.temporal.hold(func(segment.Ref) bool { return true })
			w.start()
			w.insert(3)
			w.caughtUp()
			refs, _ := w.temporal.uploaded()
			ref := refs[0]
			w.until("the segment has been acknowledged", func() bool { return len(seen.of(ref.First)) == 5 })
			if got := names(seen.of(ref.First)); !slices.Equal(got, []string{"dispatch", tc.want, "walk", "ack", "segment"}) {
				t.Errorf("told is %q", got)
			}
		})
	}
}

func TestSoManySegmentsAreFollowedAndNoMore(t *testing.T) {
	seen := &steps{}
	tr := newTraces(seen)
	at := func(i int) change.Position { return change.Position{Timeline: 1, LSN: 1, Ordinal: uint64(i)} }
	for i := range maxWays + 3 {
		tr.begin(ring.View{})
		tr.dispatched(segment.Ref{First: at(i), Last: at(i)}, "run")
	}
	if len(tr.ways) != maxWays {
		t.Errorf("%d are followed, want %d", len(tr.ways), maxWays)
	}
	if got := names(seen.of(at(2))); !slices.Equal(got, []string{"dispatch", "segment"}) {
		t.Errorf("told of one that is followed no more is %q", got)
	}
	tr.acknowledged(at(4))
	if got := names(seen.of(at(3))); !slices.Equal(got, []string{"dispatch", "segment"}) || len(tr.ways) != maxWays-2 {
		t.Errorf("told of the first that is still followed is %q, and %d are left", got, len(tr.ways))
	}
}
