package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/proc"
)

// Ways to run a pipeline, as processes in the order of their starts.
var (
	inOne = []string{"run"}
	apart = []string{"streamer", "worker"}
)

// use is what a process has used.
type use struct {
	proc.Memory // at its peak
	cpu         float64
}

// group is processes that run at the same time, in the order of their starts.
type group struct {
	running  []*proc.Process
	watchers []*proc.Watcher
}

// start starts verbs of a lane, each as a process of its own.
func (g *group) start(ctx context.Context, l lane, verbs ...string) error {
	for _, verb := range verbs {
		child, err := l.Start(fmt.Sprintf("%s_%s%d", l.slot, verb, len(g.running)+1), verb)
		if err != nil {
			return err
		}
		g.running = append(g.running, child)
		g.watchers = append(g.watchers, proc.Watch(ctx, child.PID()))
	}
	return nil
}

// stop ends them one after the other: a streamer waits for its workers to finish.
func (g *group) stop() (err error) {
	for i, child := range g.running {
		_, werr := g.watchers[i].End()
		err = errors.Join(err, werr, child.Stop(stopGrace))
	}
	return err
}

// used is what each has used so far.
func (g *group) used() ([]use, error) {
	list := make([]use, len(g.running))
	for i, child := range g.running {
		var err error
		if list[i].cpu, err = cpuSeconds(child.PID()); err != nil {
			return nil, err
		}
		list[i].Memory = g.watchers[i].Peak()
	}
	return list, nil
}

// allRun is an error if one of them has ended.
func (g *group) allRun() error {
	for _, p := range g.running {
		if !p.Running() {
			return fmt.Errorf("a process ended by itself with status %d; the end of its log:\n%s", p.ExitCode(), p.Tail(20))
		}
	}
	return nil
}

// largest is the greatest of each that one of several processes had.
func largest(list []use) (m proc.Memory) {
	for _, u := range list {
		m.Anon, m.RSS = max(m.Anon, u.Anon), max(m.RSS, u.RSS)
	}
	return m
}

// addMemory adds the peak of the process that prefix is about.
func (b *bench) addMemory(prefix string, peak proc.Memory) {
	b.report.Add(prefix+"memory_mb", "MiB", "", peak.Anon)
	b.report.Add(prefix+"rss_mb", "MiB", "", peak.RSS)
}

// addApart adds the peaks of a streamer and of the largest of its workers.
func (b *bench) addApart(prefix string, used []use) {
	streamer, worker := used[0], largest(used[1:])
	b.report.Add(prefix+"streamer_mb", "MiB", "", streamer.Anon)
	b.report.Add(prefix+"streamer_rss_mb", "MiB", "", streamer.RSS)
	b.report.Add(prefix+"worker_mb", "MiB", "", worker.Anon)
	b.report.Add(prefix+"worker_rss_mb", "MiB", "", worker.RSS)
}
