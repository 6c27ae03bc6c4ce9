package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/tidemark-cdc/tidemark/internal/config"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/tracker"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// surroundings are what a verb finds before it changes anything.
type surroundings struct {
	situation
	admin    *replication.Admin
	system   replication.System
	history  replication.History
	lake     *lake.Lake
	findings []finding
}

// preflight refuses surroundings in which a long-running verb cannot do its
// work, all that is wrong at once, and logs what will bite later. Once a
// process has started it waits out whatever fails; what is wrong from the
// start, a person has to see. What was found comes back with the lake.
func preflight(ctx context.Context, c *config.Config, r roles, tr *tracker.Tracker, logger *slog.Logger) (*lake.Lake, []finding, error) {
	around := lookAround(ctx, c, forRun, r.streamer, tr, logger, nil)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if err := refusal(around.findings); err != nil {
		return nil, nil, err
	}
	logWarnings(around.findings, logger)
	return around.lake, around.findings, nil
}

// lookAround asks everyone and changes nothing, but for the objects of the
// lake's probe, which are removed again. A worker needs no Postgres.
func lookAround(ctx context.Context, c *config.Config, why purpose, postgres bool, tr *tracker.Tracker, logger *slog.Logger, p *progress) *surroundings {
	s := &surroundings{situation: newSituation(c)}
	var ofPostgres, ofLake, ofTemporal []finding
	asked := asking{progress: p}
	if postgres {
		asked.ask("Postgres", func() { ofPostgres = s.lookAtPostgres(ctx, c, logger) })
	}
	asked.ask("the lake", func() { ofLake = s.lookAtLake(ctx, c) })
	asked.ask("Temporal", func() { ofTemporal = temporalFindings(tr.Check(ctx)) })
	asked.wait()

	list := append(settingsFindings(c), ofPostgres...)
	inPostgres := postgres && count(list, levelError) == 0
	list = append(list, ofLake...)
	switch id := s.identity; {
	case count(ofLake, levelError) > 0:
	case id == nil:
		if inPostgres && why != forRun && why != forSettling {
			list = append(list, s.situation.findings()...)
		}
		list = append(list, finding{Level: levelError, About: aboutPipeline, setup: why != forSettling,
			What: fmt.Sprintf("the lake %s was not set up", s.lake.URL()), Fix: "run tidemark setup once, with the same settings"})
	case why == forSettling:
		list = append(list, s.situation.names()...)
	case inPostgres:
		wrong := s.situation.findings()
		if len(wrong) == 0 {
			wrong = []finding{passed(aboutPipeline, "%q was set up in %s, from %s on", id.Pipeline, s.lake.URL(), id.StartLSN)}
		}
		list = append(list, wrong...)
	case !postgres && id.Pipeline != c.Pipeline:
		list = append(list, finding{Level: levelError, About: aboutPipeline,
			What: fmt.Sprintf("the lake %s belongs to pipeline %q, not to %q", s.lake.URL(), id.Pipeline, c.Pipeline), Fix: "check pipeline and lake.url"})
	}
	if len(ofTemporal) == 0 {
		ofTemporal = []finding{passed(aboutTemporal, "the namespace is there, keeps closed workflows for at least %s, and has the search attributes", tracker.MinRetention)}
	}
	s.findings = judge(append(list, ofTemporal...), why, c)
	return s
}

// asking asks several at once, and says who has not answered yet.
type asking struct {
	progress *progress
	group    sync.WaitGroup

	mu   sync.Mutex
	left []string // guarded by mu
}

func (a *asking) ask(whom string, f func()) {
	a.note(func() { a.left = append(a.left, whom) })
	a.group.Go(func() {
		f()
		a.note(func() { a.left = slices.DeleteFunc(a.left, func(s string) bool { return s == whom }) })
	})
}

func (a *asking) wait() { a.group.Wait() }

func (a *asking) note(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if change(); len(a.left) == 0 {
		a.progress.idle()
		return
	}
	a.progress.doing("asking %s", strings.Join(a.left, ", "))
}

// lookAtPostgres connects in both ways that a pipeline does.
func (s *surroundings) lookAtPostgres(ctx context.Context, c *config.Config, logger *slog.Logger) []finding {
	wrong := func(fix, format string, args ...any) finding {
		return finding{Level: levelError, About: aboutPostgres, What: fmt.Sprintf(format, args...), Fix: fix}
	}
	cfg := replicationConfig(c)
	admin, err := replication.NewAdmin(cfg, logger)
	if err != nil {
		return []finding{wrong("", "%v", err)}
	}
	s.admin = admin
	if s.facts, err = admin.InspectAhead(ctx, published(c)); replication.IsPooler(err) {
		return []finding{wrong(direct, "a pooler answers instead of the server: %v", err)}
	} else if err != nil {
		return []finding{wrong("see that postgres.url is right and the server runs", "it cannot be asked: %v", err)}
	}
	list := factFindings(s.facts)
	if way, err := admin.Look(ctx); err != nil {
		list = append(list, wrong("", "%v", err))
	} else {
		list = append(list, wayFindings(way)...)
	}
	if count(list, levelError) > 0 {
		return list
	}
	// A replication connection has rules of its own in pg_hba.conf, and knows
	// the server's identity where an ordinary role may not.
	session, err := replication.Open(ctx, cfg, logger)
	if err != nil {
		return append(list, wrong("", "a replication connection cannot be opened (a pooler may refuse it, or pg_hba.conf): %v", err))
	}
	if s.history, err = session.History(ctx); err != nil {
		list = append(list, wrong("", "%v", err))
	}
	if err := session.Close(ctx); err != nil {
		logger.Debug("close the replication connection", "error", err)
	}
	s.system = session.System()
	s.systemID = s.system.SystemID
	return append(list, passed(aboutPostgres, "a replication connection can be opened, to the system %s", s.systemID))
}

// lookAtLake opens the lake, tries it out, and reads its identity, nil if
// nobody has set it up.
func (s *surroundings) lookAtLake(ctx context.Context, c *config.Config) []finding {
	l, err := openLake(ctx, c)
	if err != nil {
		return []finding{{Level: levelError, About: aboutLake, What: err.Error()}}
	}
	s.lake = l
	list := probeFindings(l.URL(), c.Lake.ConditionalWrites, l.Probe(ctx))
	if count(list, levelError) > 0 {
		return list
	}
	id, err := l.ReadIdentity(ctx)
	switch {
	case err == nil:
		s.identity = &id
	case !errors.Is(err, lake.ErrNotFound):
		list = append(list, finding{Level: levelError, About: aboutLake, What: fmt.Sprintf("the lake %s: %v", l.URL(), err)})
	}
	return list
}
