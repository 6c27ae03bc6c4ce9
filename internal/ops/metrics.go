package ops

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// NewRegistry makes the registry of a process, with what the Go runtime and
// the operating system say of it, and tidemark_build_info.
func NewRegistry(version string) *prometheus.Registry {
	r := prometheus.NewRegistry()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "tidemark_build_info",
		Help:        "Always 1; the label is the version of this process.",
		ConstLabels: prometheus.Labels{"version": version},
	})
	info.Set(1)
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), info)
	return r
}

// Reading is one reading of a streamer's counters.
type Reading struct {
	// Connected says whether rows are being received.
	Connected bool
	// Changes and Bytes are what lies in the ring, by range: dispatched,
	// waiting, free. Bytes are raw message bytes.
	Changes map[string]int64
	Bytes   map[string]int64
	// Segments counts those that are not finished, by state.
	Segments map[string]int64
	// Ack is what Postgres was told last, Received the end of what was read.
	Ack      change.LSN
	Received change.LSN
	// FeedbackAge is the time since the last status update was sent; negative
	// before the first.
	FeedbackAge time.Duration
	// The following count since the process started.
	Reconnects int64
	Adopted    int64
}

// streamerCollector turns readings into metrics when they are asked for.
type streamerCollector struct {
	read func() Reading

	connected, changes, bytes, segments, ack, received, feedback, reconnects, adopted *prometheus.Desc
}

// NewStreamerCollector gives the metrics of a pipeline's streamer. read is
// called at every scrape, from any goroutine.
func NewStreamerCollector(pipeline string, read func() Reading) prometheus.Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("tidemark_"+name, help, labels, prometheus.Labels{"pipeline": pipeline})
	}
	return &streamerCollector{
		read:       read,
		connected:  desc("connected", "1 while rows are received from Postgres."),
		changes:    desc("ring_changes", "Changes in the ring, by range.", "range"),
		bytes:      desc("ring_bytes", "Raw message bytes in the ring, by range.", "range"),
		segments:   desc("segments", "Segments that are not finished, by state.", "state"),
		ack:        desc("ack_lsn", "The LSN that Postgres was told is safe, as a number of bytes."),
		received:   desc("received_lsn", "The LSN up to which the stream was read, as a number of bytes."),
		feedback:   desc("feedback_age_seconds", "Time since the last status update to Postgres."),
		reconnects: desc("reconnects_total", "Connections to Postgres after the first."),
		adopted:    desc("segments_adopted_total", "Segments whose boundary an earlier process had recorded."),
	}
}

// Describe implements prometheus.Collector.
func (c *streamerCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.connected, c.changes, c.bytes, c.segments, c.ack, c.received, c.feedback, c.reconnects, c.adopted} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *streamerCollector) Collect(ch chan<- prometheus.Metric) {
	r := c.read()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	byLabel := func(d *prometheus.Desc, values map[string]int64) {
		for label, v := range values {
			gauge(d, float64(v), label)
		}
	}
	connected := 0.0
	if r.Connected {
		connected = 1
	}
	gauge(c.connected, connected)
	byLabel(c.changes, r.Changes)
	byLabel(c.bytes, r.Bytes)
	byLabel(c.segments, r.Segments)
	gauge(c.ack, float64(r.Ack))
	gauge(c.received, float64(r.Received))
	if r.FeedbackAge >= 0 {
		gauge(c.feedback, r.FeedbackAge.Seconds())
	}
	ch <- prometheus.MustNewConstMetric(c.reconnects, prometheus.CounterValue, float64(r.Reconnects))
	ch <- prometheus.MustNewConstMetric(c.adopted, prometheus.CounterValue, float64(r.Adopted))
}
