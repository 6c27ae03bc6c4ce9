package ops

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// libraryLabels are the labels that a library's metrics may have. Others are
// dropped: they would not be bounded, or say the same on every series.
var libraryLabels = []string{"namespace", "operation", "task_queue", "worker_type", "poller_type", "workflow_type", "activity_type", "failure_reason", "cause"}

// Library registers the metrics of a library that names them as it goes along.
// They get the suffixes of Prometheus: _total for counters, _seconds for times.
// Safe for concurrent use.
type Library struct {
	registry prometheus.Registerer

	mu   sync.Mutex
	made map[string]prometheus.Collector
}

// NewLibrary gives a Library that registers with r.
func NewLibrary(r prometheus.Registerer) *Library {
	return &Library{registry: r, made: map[string]prometheus.Collector{}}
}

// metric gives the metric of a name, made at its first use. A name that is in
// use for another kind of metric gives one that is counted and not shown.
func metric[C prometheus.Collector](l *Library, name string, create func(prometheus.Opts) C) C {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c, ok := l.made[name].(C); ok {
		return c
	}
	c := create(prometheus.Opts{Name: name, Help: "See the documentation of Temporal's SDK."})
	if l.registry.Register(c) == nil {
		l.made[name] = c
	}
	return c
}

func libraryValues(tags map[string]string) []string {
	values := make([]string, len(libraryLabels))
	for i, l := range libraryLabels {
		// The SDK's word for nothing; to Prometheus an empty label is none.
		if v := tags[l]; v != "none" {
			values[i] = v
		}
	}
	return values
}

// Counter gives a function that adds to a counter.
func (l *Library) Counter(name string, tags map[string]string) func(int64) {
	v := metric(l, name+"_total", func(o prometheus.Opts) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts(o), libraryLabels)
	})
	c := v.WithLabelValues(libraryValues(tags)...)
	return func(n int64) { c.Add(float64(max(0, n))) }
}

// Gauge gives a function that sets a gauge.
func (l *Library) Gauge(name string, tags map[string]string) func(float64) {
	v := metric(l, name, func(o prometheus.Opts) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts(o), libraryLabels)
	})
	return v.WithLabelValues(libraryValues(tags)...).Set
}

// Timer gives a function that records a time.
func (l *Library) Timer(name string, tags map[string]string) func(time.Duration) {
	v := metric(l, name+"_seconds", func(o prometheus.Opts) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: o.Name, Help: o.Help, Buckets: []float64{0.005, 0.02, 0.1, 0.5, 1, 5, 30, 120},
		}, libraryLabels)
	})
	h := v.WithLabelValues(libraryValues(tags)...)
	return func(d time.Duration) { h.Observe(d.Seconds()) }
}
