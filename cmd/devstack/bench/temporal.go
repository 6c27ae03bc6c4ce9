package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
)

// mode is a way to cut and dispatch a backlog.
type mode struct{ rows, inFlight int }

// temporalCost drains the same backlog in segments of different sizes, with
// different numbers of them in flight.
//
// What a segment costs Tidemark itself beside its rows, workflow, activity and
// record, is what more segments of the same rows cost more. Temporal's time for a
// segment is that of a server that keeps its histories in SQLite.
func (b *bench) temporalCost(ctx context.Context) error {
	modes := []mode{{1000, 1}, {1000, 8}, {1000, 64}, {10_000, 64}}
	rows := b.size.segments * 1000
	for run := range b.size.runs {
		by, err := b.temporalOnce(ctx, run+1, rows, modes)
		if err != nil {
			return err
		}
		for i, m := range modes {
			d, segments := by[i], float64(rows/m.rows)
			b.say("temporal run %d: %d rows per segment, %d in flight: %.1f ms per segment; CPU of Temporal %.1f ms, of Tidemark %.1f ms; load %s",
				run+1, m.rows, m.inFlight, 1000*d.wall.Seconds()/segments, 1000*d.temporalCPU/segments, 1000*d.cpu()/segments, loadAverage())
			prefix := fmt.Sprintf("temporal_cost.rows_%d.in_flight_%d.", m.rows, m.inFlight)
			b.report.Add(prefix+"wall_ms_per_segment", "ms", "", 1000*d.wall.Seconds()/segments)
			b.report.Add(prefix+"server_cpu_ms_per_segment", "ms", "", 1000*d.temporalCPU/segments)
			b.report.Add(prefix+"own_cpu_ms_per_segment", "ms", "", 1000*d.cpu()/segments)
			if m.inFlight == 1 {
				// One after the other, so what is left of the time nobody has computed in.
				b.report.Add(prefix+"wait_ms_per_segment", "ms", "", 1000*max(0, d.wall.Seconds()-d.temporalCPU-d.cpu())/segments)
			}
			b.addMemory(prefix, d.used[0].Memory)
		}
		more := float64(rows/modes[2].rows - rows/modes[3].rows)
		b.report.Add("temporal_cost.client_cpu_ms_per_segment", "ms", "", 1000*(by[2].cpu()-by[3].cpu())/more)
	}
	return nil
}

// temporalOnce drains in each mode.
func (b *bench) temporalOnce(ctx context.Context, run, rows int, modes []mode) (by []drained, err error) {
	defer func() { err = errors.Join(err, b.dropSlots(ctx)) }()
	var lanes []lane
	for _, m := range modes {
		l, err := b.newPipeline(ctx, fmt.Sprintf("temporal-%d-%d-%d", m.rows, m.inFlight, run), narrow, pipeline.Settings{
			"segment.max_rows": m.rows, "streamer.max_in_flight": m.inFlight, "segment.max_age": "200ms",
		})
		if err != nil {
			return nil, err
		}
		lanes = append(lanes, l)
	}
	inside, err := b.fill(ctx, narrow, rows, 1000, 32)
	if err != nil {
		return nil, err
	}
	for _, l := range lanes {
		d, err := b.drainBy(ctx, l, inside, inOne...)
		if err != nil {
			return nil, err
		}
		by = append(by, d)
	}
	return by, nil
}
