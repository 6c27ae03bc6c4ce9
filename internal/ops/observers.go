package ops

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// StreamerObserver counts what a streamer's status cannot show. It is the
// streamer's Observer.
type StreamerObserver struct {
	reconnects *prometheus.CounterVec
	latency    prometheus.Histogram
	changes    prometheus.Counter
	restarts   *prometheus.CounterVec

	mu sync.Mutex
	// inLake counts changes as changes does; slowest is the longest latency since
	// the last Sample, negative without one.
	inLake  int64
	slowest time.Duration
}

// NewStreamerObserver registers the metrics of a pipeline's streamer. causes are
// those that Reconnected may be told, endings those that Restarted may: each
// counts from zero, so that the first one is seen as an increase.
func NewStreamerObserver(r prometheus.Registerer, pipeline string, causes, endings []string) *StreamerObserver {
	m := maker{pipeline}
	o := &StreamerObserver{
		reconnects: m.counters("reconnects_total", "Connections to Postgres after the first, by what ended the one before.", "cause"),
		latency: m.histogram("commit_to_lake_seconds", "Time from the commit of a segment's first change to when the segment was seen to be in the lake.",
			[]float64{0.25, 0.5, 1, 2, 3, 5, 7.5, 10, 15, 30, 60, 120, 300, 900, 3600, 6 * 3600}),
		changes:  m.counter("changes_in_lake_total", "Changes of the segments that were seen to have come into the lake."),
		restarts: m.counters("segments_restarted_total", "Segments in flight whose workflow was started again, by how it had ended.", "ending"),
		slowest:  -1,
	}
	for _, cause := range causes {
		o.reconnects.WithLabelValues(cause)
	}
	for _, ending := range endings {
		o.restarts.WithLabelValues(ending)
	}
	r.MustRegister(o.reconnects, o.latency, o.changes, o.restarts)
	return o
}

// Reconnected counts a connection after the first.
func (o *StreamerObserver) Reconnected(cause string) { o.reconnects.WithLabelValues(cause).Inc() }

// InLake counts a segment of rows changes.
func (o *StreamerObserver) InLake(rows int64, sinceCommit time.Duration) {
	o.latency.Observe(sinceCommit.Seconds())
	o.changes.Add(float64(rows))
	o.mu.Lock()
	defer o.mu.Unlock()
	o.inLake += rows
	o.slowest = max(o.slowest, sinceCommit)
}

// Sample is what the charts take from a reading, and from what has come into the
// lake since the last Sample.
func (o *StreamerObserver) Sample(r Reading) Sample {
	s := Sample{LagBytes: -1, Age: r.SegmentAge}
	for _, n := range r.Received {
		s.Received += n
	}
	if r.Slot != nil {
		s.LagBytes = max(0, r.Slot.LagBytes)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	s.InLake, s.Latency = o.inLake, o.slowest
	o.slowest = -1
	return s
}

// Restarted counts a segment whose workflow was started again.
func (o *StreamerObserver) Restarted(why string) { o.restarts.WithLabelValues(why).Inc() }

// WorkerObserver counts what attempts do. It is the activities' Observer.
type WorkerObserver struct {
	attempts, failures, decoded *prometheus.CounterVec
	steps                       *prometheus.HistogramVec
	bytes                       prometheus.Histogram
	rows, quarantined           prometheus.Counter
}

// NewWorkerObserver registers the metrics of a pipeline's worker. classes are
// those of the errors that Attempted may be told; each counts from zero.
func NewWorkerObserver(r prometheus.Registerer, pipeline string, classes []string) *WorkerObserver {
	m := maker{pipeline}
	o := &WorkerObserver{
		attempts: m.counters("upload_attempts_total", "Attempts that have ended, by action: upload, quarantine, replay.", "action"),
		failures: m.counters("upload_failures_total", "Attempts that have failed, by action and class of the error.", "action", "class"),
		decoded:  m.counters("changes_decoded_total", "Changes decoded and encoded, by operation; once for each attempt.", "operation"),
		steps: m.histograms("upload_step_seconds", "Time that attempts have spent in a step: look, wait, fetch, encode, store.",
			[]float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}, "step"),
		bytes: m.histogram("object_bytes", "Sizes of the objects stored.",
			prometheus.ExponentialBuckets(1<<10, 4, 10)),
		rows:        m.counter("rows_stored_total", "Rows of the objects stored."),
		quarantined: m.counter("segments_quarantined_total", "Segments whose raw messages were put aside."),
	}
	for _, action := range []string{"upload", "quarantine", "replay"} {
		o.attempts.WithLabelValues(action)
		for _, class := range classes {
			o.failures.WithLabelValues(action, class)
		}
	}
	r.MustRegister(o.attempts, o.failures, o.decoded, o.steps, o.bytes, o.rows, o.quarantined)
	return o
}

// Attempted counts an attempt that has ended; class is empty if it has not
// failed.
func (o *WorkerObserver) Attempted(action, class string) {
	o.attempts.WithLabelValues(action).Inc()
	if class != "" {
		o.failures.WithLabelValues(action, class).Inc()
	}
}

// Stepped counts the time of a step.
func (o *WorkerObserver) Stepped(step string, took time.Duration) {
	o.steps.WithLabelValues(step).Observe(took.Seconds())
}

// Decoded counts n changes of an operation.
func (o *WorkerObserver) Decoded(operation string, n int64) {
	o.decoded.WithLabelValues(operation).Add(float64(n))
}

// Stored counts an object.
func (o *WorkerObserver) Stored(rows, bytes int64, quarantined bool) {
	o.bytes.Observe(float64(bytes))
	o.rows.Add(float64(rows))
	if quarantined {
		o.quarantined.Inc()
	}
}
