package main

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/ops"
	"github.com/tidemark-cdc/tidemark/streamer"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
	"github.com/tidemark-cdc/tidemark/streamer/ring"
)

func TestAReadingIsTheStatusInNumbers(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	safe, left := int64(5), 3.5
	st := streamer.Status{
		Paused: &lake.Pause{By: "ann"}, Connected: true, Phase: streamer.Streaming,
		Ring: ring.Stats{
			Dispatched: ring.Usage{Changes: 10, Bytes: 1000}, Finished: ring.Usage{Changes: 4, Bytes: 300},
			Waiting: ring.Usage{Changes: 2, Bytes: 20}, Free: ring.Usage{Bytes: 7},
			Segments: 3, FinishedSegments: 1, OldestWaiting: change.TimeOf(now.Add(-2 * time.Second)),
		},
		InFlight:  []streamer.Flight{{Since: now.Add(-time.Minute)}, {Since: now.Add(-time.Second)}},
		Recording: &streamer.Recording{Since: now.Add(-5 * time.Second)},
		SlotSeen:  now.Add(-4 * time.Second), Reported: now.Add(-3 * time.Second),
		Slot: &replication.SlotInfo{LagBytes: 1, RetainedBytes: 2, SafeWALSize: &safe, WALStatus: "lost"},
		WAL:  &streamer.WAL{Level: streamer.WALAlarm, HoursLeft: &left},
	}
	r := readingOf(st, now)
	if r.Changes["dispatched"] != 6 || r.Changes["finished"] != 4 || r.Bytes["dispatched"] != 700 || r.Bytes["free"] != 7 {
		t.Errorf("ranges: %v changes, %v bytes", r.Changes, r.Bytes)
	}
	if r.Segments["running"] != 2 || r.Segments["finished"] != 1 {
		t.Errorf("segments: %v", r.Segments)
	}
	if r.WaitingAge != 2*time.Second || r.SegmentAge != time.Minute || r.RecordAge != 5*time.Second || r.FeedbackAge != 3*time.Second {
		t.Errorf("ages: waiting %s, segment %s, record %s, feedback %s", r.WaitingAge, r.SegmentAge, r.RecordAge, r.FeedbackAge)
	}
	if s := r.Slot; s == nil || s.SeenAge != 4*time.Second || s.RetainedBytes != 2 || *s.SafeBytes != 5 || !s.Lost {
		t.Errorf("slot: %+v", s)
	}
	if w := r.WAL; w == nil || w.Level != 2 || *w.HoursLeft != 3.5 {
		t.Errorf("WAL: %+v", w)
	}
	if !r.Paused {
		t.Error("it is paused")
	}
	idle := readingOf(streamer.Status{Phase: streamer.Connecting}, now)
	if idle.WaitingAge != 0 || idle.SegmentAge != 0 || idle.RecordAge != 0 || idle.FeedbackAge >= 0 || idle.Slot != nil {
		t.Errorf("without anything: %+v", idle)
	}
}

func TestTheMetricsOfTheSDKKeepTheirTags(t *testing.T) {
	reg := prometheus.NewRegistry()
	var h client.MetricsHandler = sdkMetrics{library: ops.NewLibrary(reg)}
	queue := h.WithTags(map[string]string{"task_queue": "q", "operation": "x"})
	queue.WithTags(map[string]string{"operation": "y"}).Counter("temporal_request").Inc(2)
	queue.Timer("temporal_request_latency").Record(time.Second)
	queue.Gauge("temporal_num_pollers").Update(3)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if len(families) != 3 {
		t.Fatalf("%d families", len(families))
	}
	labels := map[string]string{}
	for _, l := range families[2].GetMetric()[0].GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	if families[2].GetName() != "temporal_request_total" || labels["task_queue"] != "q" || labels["operation"] != "y" {
		t.Errorf("%s has %v", families[2].GetName(), labels)
	}
}
