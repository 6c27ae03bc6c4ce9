package main

import (
	"maps"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/tidemark-cdc/tidemark/internal/ops"
)

// sdkMetrics takes the metrics of Temporal's SDK into the process' own. Its names
// and tags are the SDK's.
type sdkMetrics struct {
	library *ops.Library
	tags    map[string]string
}

func (m sdkMetrics) WithTags(tags map[string]string) client.MetricsHandler {
	all := maps.Clone(m.tags)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, tags)
	return sdkMetrics{m.library, all}
}

func (m sdkMetrics) Counter(name string) client.MetricsCounter {
	return counterFunc(m.library.Counter(name, m.tags))
}

func (m sdkMetrics) Gauge(name string) client.MetricsGauge {
	return gaugeFunc(m.library.Gauge(name, m.tags))
}

func (m sdkMetrics) Timer(name string) client.MetricsTimer {
	return timerFunc(m.library.Timer(name, m.tags))
}

type counterFunc func(int64)

func (f counterFunc) Inc(n int64) { f(n) }

type gaugeFunc func(float64)

func (f gaugeFunc) Update(v float64) { f(v) }

type timerFunc func(time.Duration)

func (f timerFunc) Record(d time.Duration) { f(d) }
