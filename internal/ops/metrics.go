package ops

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
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

// maker makes metrics of one pipeline, for one registry.
type maker struct{ pipeline string }

func (m maker) opts(name, help string) prometheus.Opts {
	return prometheus.Opts{Name: "tidemark_" + name, Help: help, ConstLabels: prometheus.Labels{"pipeline": m.pipeline}}
}

func (m maker) counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts(m.opts(name, help)))
}

func (m maker) counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts(m.opts(name, help)), labels)
}

func (m maker) histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(m.histogramOpts(name, help, buckets))
}

func (m maker) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(m.histogramOpts(name, help, buckets), labels)
}

func (m maker) histogramOpts(name, help string, buckets []float64) prometheus.HistogramOpts {
	o := m.opts(name, help)
	return prometheus.HistogramOpts{Name: o.Name, Help: o.Help, ConstLabels: o.ConstLabels, Buckets: buckets}
}
