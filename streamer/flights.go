package streamer

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer/ring"
)

// flights is the list of segments that are dispatched and not finished, for the
// status and for a graceful stop, and of those that have finished behind one of
// them, for the status alone.
type flights struct {
	mu    sync.Mutex
	now   map[ring.SegmentID]Flight
	empty chan struct{} // closed while now is empty
	// ahead have finished, each behind one of now; at most maxAhead.
	ahead map[ring.SegmentID]Flight
	// first is the lowest of now, since when it has been that. Without one it is
	// none.
	first ring.SegmentID
	since time.Time
}

const none ring.SegmentID = math.MaxUint64

// maxAhead bounds the finished segments that are remembered one by one.
const maxAhead = 256

// Flight is a segment in flight.
type Flight struct {
	Ref segment.Ref `json:"ref"`
	// Since is when it was dispatched or adopted, Finished when it was seen to be
	// in the lake; zero before.
	Since    time.Time `json:"since"`
	Finished time.Time `json:"finished,omitzero"`
}

func newFlights() *flights {
	f := &flights{now: map[ring.SegmentID]Flight{}, ahead: map[ring.SegmentID]Flight{}, empty: make(chan struct{}), first: none}
	close(f.empty)
	return f
}

func (f *flights) add(id ring.SegmentID, ref segment.Ref) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.now) == 0 {
		f.empty = make(chan struct{})
	}
	f.now[id] = Flight{Ref: ref, Since: time.Now()}
	f.walk()
}

// remove takes a segment out that is no longer waited for.
func (f *flights) remove(id ring.SegmentID) { f.end(id, false) }

// finish is remove for a segment that is in the lake.
func (f *flights) finish(id ring.SegmentID) { f.end(id, true) }

func (f *flights) end(id ring.SegmentID, finished bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x, ok := f.now[id]
	if !ok {
		return
	}
	delete(f.now, id)
	if len(f.now) == 0 {
		close(f.empty)
	}
	if finished && len(f.ahead) < maxAhead {
		x.Finished = time.Now()
		f.ahead[id] = x
	}
	f.walk()
}

// walk finds the first one, and forgets what has no unfinished one before it. The
// caller holds mu.
func (f *flights) walk() {
	first := slices.Min(append(slices.Collect(maps.Keys(f.now)), none))
	if first != f.first {
		f.first, f.since = first, time.Now()
	}
	maps.DeleteFunc(f.ahead, func(id ring.SegmentID, _ Flight) bool { return id < first })
}

func (f *flights) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.now)
}

// list gives the flights, and those that have finished ahead, in stream order,
// neither nil; and since when the first flight has been the first.
func (f *flights) list() (now, ahead []Flight, since time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first != none {
		since = f.since
	}
	return inOrder(f.now), inOrder(f.ahead), since
}

func inOrder(flights map[ring.SegmentID]Flight) []Flight {
	all := make([]Flight, 0, len(flights))
	for _, x := range flights {
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b Flight) int { return a.Ref.First.Compare(b.Ref.First) })
	return all
}

// wait blocks until nothing is in flight.
func (f *flights) wait(ctx context.Context) error {
	f.mu.Lock()
	empty := f.empty
	f.mu.Unlock()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-empty:
		return nil
	default:
		return ctx.Err()
	}
}
