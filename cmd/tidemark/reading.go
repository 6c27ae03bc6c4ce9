package main

import (
	"time"

	"github.com/tidemark-cdc/tidemark/activities"
	"github.com/tidemark-cdc/tidemark/internal/ops"
	"github.com/tidemark-cdc/tidemark/streamer"
)

// classNames are the classes of errors that attempts are counted by.
func classNames() []string {
	var names []string
	for _, c := range activities.Classes() {
		names = append(names, string(c))
	}
	return names
}

// readingOf gives a streamer's status in numbers. Ages are as of now.
func readingOf(st streamer.Status, now time.Time) ops.Reading {
	r := st.Ring
	reading := ops.Reading{
		Connected:     st.Connected,
		Paused:        st.Paused != nil,
		State:         string(st.Phase),
		Received:      st.ReceivedChanges,
		ReceivedBytes: st.ReceivedBytes,
		Changes: map[string]int64{
			"dispatched": int64(r.Dispatched.Changes - r.Finished.Changes),
			"finished":   int64(r.Finished.Changes),
			"waiting":    int64(r.Waiting.Changes),
		},
		Bytes: map[string]int64{
			"dispatched": r.Dispatched.Bytes - r.Finished.Bytes, "finished": r.Finished.Bytes,
			"waiting": r.Waiting.Bytes, "free": r.Free.Bytes,
		},
		Full: r.Full,
		Segments: map[string]int64{
			"running": int64(r.Segments - r.FinishedSegments), "finished": int64(r.FinishedSegments),
		},
		Ack:         st.AckRecorded,
		ReceivedEnd: st.Received.LSN,
		FeedbackAge: -1,
		Adopted:     st.Adopted,
		Drifted:     drifted(st.Drift),
	}
	for _, p := range streamer.Phases() {
		reading.States = append(reading.States, string(p))
	}
	if r.OldestWaiting != 0 {
		reading.WaitingAge = max(0, now.Sub(r.OldestWaiting.UTC()))
	}
	if len(st.InFlight) > 0 {
		reading.SegmentAge = max(0, now.Sub(st.InFlight[0].Since))
	}
	if st.Recording != nil {
		reading.RecordAge = max(0, now.Sub(st.Recording.Since))
	}
	if !st.Reported.IsZero() {
		reading.FeedbackAge = max(0, now.Sub(st.Reported))
	}
	if s := st.Slot; s != nil {
		reading.Slot = &ops.SlotReading{
			SeenAge:  max(0, now.Sub(st.SlotSeen)),
			LagBytes: s.LagBytes, RetainedBytes: s.RetainedBytes, SafeBytes: s.SafeWALSize, Lost: s.Lost(),
		}
	}
	if w := st.WAL; w != nil {
		reading.WAL = &ops.WALReading{Level: w.Level.Number(), HoursLeft: w.HoursLeft}
	}
	return reading
}

// drifted counts the tables whose rows do not come; every kind is there, so that
// zero is seen too.
func drifted(tables []streamer.Drift) map[string]int64 {
	counts := map[string]int64{}
	for _, kind := range streamer.DriftKinds() {
		counts[string(kind)] = 0
	}
	for _, t := range tables {
		if !t.Published {
			counts[string(t.Kind)]++
		}
	}
	return counts
}
