package ops

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// Reading is one reading of a streamer's counters.
type Reading struct {
	// Connected says whether rows are being received; State is the one of States
	// that the session is in.
	Connected bool
	State     string
	States    []string
	// Paused says that a person has paused the pipeline.
	Paused bool
	// Received counts changes by operation, ReceivedBytes their raw bytes, since
	// the process started.
	Received      map[string]int64
	ReceivedBytes int64
	// Changes and Bytes are what lies in the ring, by range: dispatched,
	// finished, waiting, free. Bytes count a fixed overhead for each change.
	Changes map[string]int64
	Bytes   map[string]int64
	// Full says that a change waits for room in the ring.
	Full bool
	// Segments counts those in flight, by state: running, finished.
	Segments map[string]int64
	// WaitingAge is the time since the first waiting change was received,
	// SegmentAge since the first unfinished segment was dispatched; zero without
	// one.
	WaitingAge time.Duration
	SegmentAge time.Duration
	// RecordAge is the time since the write of the lake's record of the ack that
	// is under way began; zero without one.
	RecordAge time.Duration
	// Ack is what Postgres was told last, ReceivedEnd the end of what was read.
	Ack         change.LSN
	ReceivedEnd change.LSN
	// FeedbackAge is the time since the last status update was sent; negative
	// while there is no connection.
	FeedbackAge time.Duration
	// Slot is how the slot was seen last; nil before.
	Slot *SlotReading
	// WAL is what was found of the WAL that is kept for the slot; nil before.
	WAL *WALReading
	// Adopted counts since the process started.
	Adopted int64
	// Drifted counts the wanted tables whose rows do not come, by what has become
	// of them.
	Drifted map[string]int64
	// TemporalOutage is since when Temporal has not been reached; zero while it
	// answers.
	TemporalOutage time.Duration
}

// SlotReading is how Postgres shows the slot.
type SlotReading struct {
	// SeenAge is the time since the slot was last seen to be this streamer's.
	SeenAge time.Duration
	// LagBytes is the WAL behind the ack, RetainedBytes what the slot keeps, and
	// SafeBytes what may still be written before the slot can be lost; nil
	// without a limit.
	LagBytes      int64
	RetainedBytes int64
	SafeBytes     *int64
	// Lost says that the slot cannot be read any more.
	Lost bool
}

// WALReading is what the kept WAL comes to.
type WALReading struct {
	// Level is 0, 1 for a warning, or 2 for an alarm.
	Level int
	// HoursLeft is when the slot can be lost at the present rate; nil without a
	// limit, or while the kept WAL does not grow.
	HoursLeft *float64
}

// emit gives one value of a metric.
type emit func(value float64, labels ...string)

// series is a metric that is taken from a Reading.
type series struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	take func(Reading, emit)
}

// streamerCollector turns readings into metrics when they are asked for.
type streamerCollector struct {
	read   func() Reading
	series []series
}

// NewStreamerCollector gives the metrics of a pipeline's streamer that are read
// off its status. read is called at every scrape, from any goroutine.
func NewStreamerCollector(pipeline string, read func() Reading) prometheus.Collector {
	c := &streamerCollector{read: read}
	add := func(kind prometheus.ValueType, name, help string, take func(Reading, emit), labels ...string) {
		desc := prometheus.NewDesc("tidemark_"+name, help, labels, prometheus.Labels{"pipeline": pipeline})
		c.series = append(c.series, series{desc, kind, take})
	}
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	add(gauge, "connected", "1 while rows are received from Postgres.",
		func(r Reading, e emit) { e(one(r.Connected)) })
	add(gauge, "session_state", "1 for the state that the session with Postgres is in, 0 for the others.",
		func(r Reading, e emit) {
			for _, s := range r.States {
				e(one(s == r.State), s)
			}
		}, "state")
	add(gauge, "paused", "1 while a person has paused the pipeline, and so nothing is dispatched.",
		func(r Reading, e emit) { e(one(r.Paused)) })
	add(counter, "changes_received_total", "Changes received into the ring, by operation.",
		func(r Reading, e emit) { byLabel(r.Received, e) }, "operation")
	add(counter, "received_bytes_total", "Raw message bytes of the changes received.",
		func(r Reading, e emit) { e(float64(r.ReceivedBytes)) })
	add(gauge, "ring_changes", "Changes in the ring, by range.",
		func(r Reading, e emit) { byLabel(r.Changes, e) }, "range")
	add(gauge, "ring_bytes", "Bytes of the ring, by range, with an overhead for each change.",
		func(r Reading, e emit) { byLabel(r.Bytes, e) }, "range")
	add(gauge, "ring_full", "1 while a change waits for room in the ring, and so nothing is read.",
		func(r Reading, e emit) { e(one(r.Full)) })
	add(gauge, "segments", "Segments in flight, by state.",
		func(r Reading, e emit) { byLabel(r.Segments, e) }, "state")
	add(gauge, "oldest_waiting_age_seconds", "Time since the first waiting change was received; 0 if none waits.",
		func(r Reading, e emit) { e(r.WaitingAge.Seconds()) })
	add(gauge, "oldest_segment_age_seconds", "Time since the first unfinished segment, which holds the ack, was dispatched; 0 without one.",
		func(r Reading, e emit) { e(r.SegmentAge.Seconds()) })
	add(gauge, "ack_record_pending_seconds", "Time since the write of the lake's record of the ack that is under way began; 0 without one.",
		func(r Reading, e emit) { e(r.RecordAge.Seconds()) })
	add(gauge, "ack_lsn", "The LSN that is on record as safe, as a number of bytes.",
		func(r Reading, e emit) { e(float64(r.Ack)) })
	add(gauge, "received_lsn", "The LSN of the last change received, as a number of bytes.",
		func(r Reading, e emit) { e(float64(r.ReceivedEnd)) })
	add(gauge, "feedback_age_seconds", "Time since the last status update to Postgres; absent while there is no connection.",
		func(r Reading, e emit) {
			if r.FeedbackAge >= 0 {
				e(r.FeedbackAge.Seconds())
			}
		})
	add(counter, "segments_adopted_total", "Segments whose boundary an earlier process had recorded.",
		func(r Reading, e emit) { e(float64(r.Adopted)) })
	add(gauge, "drifted_tables", "Wanted tables whose rows do not come, by what has become of them.",
		func(r Reading, e emit) { byLabel(r.Drifted, e) }, "kind")
	add(gauge, "temporal_outage_seconds", "Time since Temporal has not been reached; 0 while it answers.",
		func(r Reading, e emit) { e(r.TemporalOutage.Seconds()) })
	ofSlot := func(name, help string, take func(SlotReading, emit)) {
		add(gauge, name, help, func(r Reading, e emit) {
			if r.Slot != nil {
				take(*r.Slot, e)
			}
		})
	}
	ofSlot("slot_seen_age_seconds", "Time since Postgres last confirmed that the slot is this streamer's.",
		func(s SlotReading, e emit) { e(s.SeenAge.Seconds()) })
	ofSlot("slot_lag_bytes", "WAL between the slot's confirmed position and the server's end of WAL, when last seen.",
		func(s SlotReading, e emit) { e(float64(s.LagBytes)) })
	ofSlot("slot_retained_wal_bytes", "WAL that the server keeps for the slot, when last seen.",
		func(s SlotReading, e emit) { e(float64(s.RetainedBytes)) })
	ofSlot("slot_safe_wal_bytes", "WAL that may still be written before the slot can be lost, when last seen; absent without max_slot_wal_keep_size.",
		func(s SlotReading, e emit) {
			if s.SafeBytes != nil {
				e(float64(*s.SafeBytes))
			}
		})
	ofWAL := func(name, help string, take func(WALReading, emit)) {
		add(gauge, name, help, func(r Reading, e emit) {
			if r.WAL != nil {
				take(*r.WAL, e)
			}
		})
	}
	ofWAL("slot_wal_level", "What the WAL that is kept for the slot comes to: 0 fine, 1 warning, 2 alarm.",
		func(w WALReading, e emit) { e(float64(w.Level)) })
	ofWAL("slot_hours_left", "Hours until the slot can be lost, at the rate of the last ten minutes; absent without max_slot_wal_keep_size, and while the kept WAL does not grow.",
		func(w WALReading, e emit) {
			if w.HoursLeft != nil {
				e(*w.HoursLeft)
			}
		})
	ofSlot("slot_lost", "1 when the server has removed WAL that the slot needed.",
		func(s SlotReading, e emit) { e(one(s.Lost)) })
	return c
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func byLabel(values map[string]int64, e emit) {
	for label, v := range values {
		e(float64(v), label)
	}
}

// Describe implements prometheus.Collector.
func (c *streamerCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, s := range c.series {
		ch <- s.desc
	}
}

// Collect implements prometheus.Collector.
func (c *streamerCollector) Collect(ch chan<- prometheus.Metric) {
	r := c.read()
	for _, s := range c.series {
		s.take(r, func(v float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(s.desc, s.kind, v, labels...)
		})
	}
}
