package ops

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestTheHistoryHasRatesAndLeavesOutWhatIsNotKnown(t *testing.T) {
	begin := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	var h History
	h.Add(begin, Sample{Received: 100, InLake: 50, LagBytes: -1, Latency: -1})
	h.Add(begin.Add(5*time.Second), Sample{Received: 150, InLake: 50, LagBytes: 7, Latency: 1500 * time.Millisecond, Age: 2 * time.Second})
	// A streamer that begins anew counts from zero.
	h.Add(begin.Add(10*time.Second), Sample{Received: 3, InLake: 50, LagBytes: 0, Latency: 0})
	points, added := h.since(0)
	if added != 3 || len(points) != 3 {
		t.Fatalf("%d points of %d", len(points), added)
	}
	if p := points[0]; p.Received != nil || p.InLake != nil || p.LagBytes != nil || p.Latency != nil {
		t.Errorf("the first point knows rates, or what was not sampled: %+v", p)
	}
	if p := points[1]; *p.Received != 10 || *p.InLake != 0 || *p.LagBytes != 7 || *p.Latency != 1.5 || p.Age != 2 {
		t.Errorf("the second point: %v, %v, %v, %v, %v", *p.Received, *p.InLake, *p.LagBytes, *p.Latency, p.Age)
	}
	if p := points[2]; *p.Received != 0 || *p.LagBytes != 0 || *p.Latency != 0 {
		t.Errorf("the third point: %v, %v, %v", *p.Received, *p.LagBytes, *p.Latency)
	}
	if points, added := h.since(2); added != 3 || len(points) != 1 || *points[0].LagBytes != 0 {
		t.Errorf("after the second: %+v of %d", points, added)
	}
	if points, _ := h.since(3); len(points) != 0 {
		t.Errorf("after the last: %+v", points)
	}
}

func TestTheHistoryHoldsFifteenMinutes(t *testing.T) {
	begin := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	var h History
	const n = 2*maxPoints + 7
	for i := range n {
		h.Add(begin.Add(time.Duration(i)*sampleEvery), Sample{})
	}
	points, added := h.since(0)
	if added != n || len(points) != maxPoints {
		t.Fatalf("%d points of %d", len(points), added)
	}
	first, last := points[0].At, points[maxPoints-1].At
	if want := begin.Add(time.Duration(n-1) * sampleEvery); !last.Equal(want) || last.Sub(first) != 15*time.Minute-sampleEvery {
		t.Errorf("the points are of %s to %s, the last that was added is of %s", first, last, want)
	}
}

func TestASampleHasTheSlowestOfWhatHasComeIntoTheLakeSinceTheLast(t *testing.T) {
	o := NewStreamerObserver(prometheus.NewRegistry(), "shop", nil, nil)
	r := Reading{Received: map[string]int64{"insert": 3, "update": 4}, SegmentAge: time.Minute}
	if s := o.Sample(r); s != (Sample{Received: 7, LagBytes: -1, Latency: -1, Age: time.Minute}) {
		t.Errorf("before anything has come: %+v", s)
	}
	o.InLake(10, 2*time.Second)
	o.InLake(5, time.Second)
	r.Slot = &SlotReading{LagBytes: 9}
	if s := o.Sample(r); s != (Sample{Received: 7, InLake: 15, LagBytes: 9, Latency: 2 * time.Second, Age: time.Minute}) {
		t.Errorf("after two segments: %+v", s)
	}
	if s := o.Sample(r); s.InLake != 15 || s.Latency != -1 {
		t.Errorf("and then: %+v", s)
	}
}
