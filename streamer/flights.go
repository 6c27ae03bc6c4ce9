package streamer

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer/ring"
)

// flights is the list of segments that are dispatched and not finished, for the
// status and for a graceful stop.
type flights struct {
	mu    sync.Mutex
	now   map[ring.SegmentID]Flight
	empty chan struct{} // closed while now is empty
}

// Flight is a segment in flight.
type Flight struct {
	Ref   segment.Ref `json:"ref"`
	Since time.Time   `json:"since"`
}

func newFlights() *flights {
	f := &flights{now: map[ring.SegmentID]Flight{}, empty: make(chan struct{})}
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
}

func (f *flights) remove(id ring.SegmentID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.now[id]; !ok {
		return
	}
	delete(f.now, id)
	if len(f.now) == 0 {
		close(f.empty)
	}
}

func (f *flights) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.now)
}

// list gives the flights in stream order.
func (f *flights) list() []Flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]Flight, 0, len(f.now))
	for _, x := range f.now {
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
