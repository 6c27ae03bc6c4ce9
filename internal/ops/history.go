package ops

import (
	"sync"
	"time"
)

// The charts have a point for every sampleEvery of the last 15 minutes.
const (
	sampleEvery = 5 * time.Second
	maxPoints   = int(15 * time.Minute / sampleEvery)
)

// Sample is one look at what the charts show.
type Sample struct {
	// Received and InLake count changes since the process began: into the ring,
	// and of the segments that were seen to have come into the lake.
	Received, InLake int64
	// LagBytes is the WAL behind the ack, negative while that is not known.
	LagBytes int64
	// Latency is the longest time from commit to lake of the segments that have
	// come into the lake since the last sample; negative if there was none.
	Latency time.Duration
	// Age is the time since the segment that holds the ack was dispatched; zero
	// without one.
	Age time.Duration
}

// Point is what the charts show of one moment. What was not known then is nil.
type Point struct {
	At time.Time `json:"at"`
	// Received and InLake are changes a second since the point before.
	Received *float64 `json:"received"`
	InLake   *float64 `json:"in_lake"`
	LagBytes *int64   `json:"lag_bytes"`
	// Latency and Age are seconds.
	Latency *float64 `json:"latency"`
	Age     float64  `json:"age"`
}

// History holds the points of the last 15 minutes, in memory of a fixed size.
// The zero History is empty. Safe for concurrent use.
type History struct {
	mu     sync.Mutex
	points [maxPoints]Point
	// added counts the points that were ever added; the last stands at
	// (added-1) % maxPoints.
	added int
	last  Sample
}

// Add makes a point of a sample. at must not go back.
func (h *History) Add(at time.Time, s Sample) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := Point{At: at, Age: s.Age.Seconds()}
	if s.LagBytes >= 0 {
		p.LagBytes = &s.LagBytes
	}
	if s.Latency >= 0 {
		p.Latency = new(s.Latency.Seconds())
	}
	if h.added > 0 {
		if passed := at.Sub(h.points[(h.added-1)%maxPoints].At).Seconds(); passed > 0 {
			p.Received = new(float64(max(0, s.Received-h.last.Received)) / passed)
			p.InLake = new(float64(max(0, s.InLake-h.last.InLake)) / passed)
		}
	}
	h.points[h.added%maxPoints] = p
	h.added++
	h.last = s
}

// since gives the points after the first so many that were added, as far as they
// are held, and how many there were in all.
func (h *History) since(seen int) (points []Point, added int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := max(seen, h.added-maxPoints); i < h.added; i++ {
		points = append(points, h.points[i%maxPoints])
	}
	return points, h.added
}
