package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/tidemark-cdc/tidemark/internal/config"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/tracker"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// preflight refuses surroundings in which a long-running verb cannot do its
// work, all that is wrong at once. It changes nothing. Once a process has
// started it waits out whatever fails; what is wrong from the start, a person
// has to see.
func preflight(ctx context.Context, c *config.Config, r roles, tr *tracker.Tracker, logger *slog.Logger) (*lake.Lake, error) {
	found := newSituation(c)
	var problems []string
	if r.streamer {
		var system replication.System
		_, system, found.facts, problems = lookAtPostgres(ctx, c, logger)
		found.systemID = system.SystemID
	}
	inPostgres := len(problems) == 0
	l, id, more := lookAtLake(ctx, c)
	problems = append(problems, more...)
	found.identity = id
	switch {
	case len(more) > 0:
	case id == nil:
		problems = append(problems, fmt.Sprintf("the lake %s was not set up: run tidemark setup once, with the same settings", l.URL()))
	case !r.streamer && id.Pipeline != c.Pipeline:
		problems = append(problems, fmt.Sprintf("the lake %s belongs to pipeline %q, not to %q: check pipeline and lake.url", l.URL(), id.Pipeline, c.Pipeline))
	case r.streamer && inPostgres:
		problems = append(problems, found.problems()...)
	}
	problems = append(problems, tr.Check(ctx)...)
	if len(problems) == 0 || ctx.Err() != nil {
		return l, ctx.Err()
	}
	return nil, refused(&config.InvalidError{Problems: problems})
}

// lookAtPostgres connects in both ways that a pipeline does, and gives what is
// wrong, but not what setup would make.
func lookAtPostgres(ctx context.Context, c *config.Config, logger *slog.Logger) (*replication.Admin, replication.System, replication.Facts, []string) {
	cfg := replicationConfig(c)
	admin, err := replication.NewAdmin(cfg, logger)
	if err != nil {
		return nil, replication.System{}, replication.Facts{}, []string{"Postgres: " + err.Error()}
	}
	facts, err := admin.Inspect(ctx)
	if err != nil {
		return admin, replication.System{}, facts, []string{fmt.Sprintf("Postgres cannot be asked: %v; see that postgres.url is right and the server runs", err)}
	}
	var problems []string
	for _, p := range replication.Check(facts) {
		if !p.Setup {
			problems = append(problems, "Postgres: "+p.String())
		}
	}
	if len(problems) > 0 {
		return admin, replication.System{}, facts, problems
	}
	// A replication connection has rules of its own in pg_hba.conf, and knows
	// the server's identity where an ordinary role may not.
	session, err := replication.Open(ctx, cfg, logger)
	if err != nil {
		return admin, replication.System{}, facts, []string{fmt.Sprintf("Postgres: a replication connection cannot be opened: %v", err)}
	}
	if err := session.Close(ctx); err != nil {
		logger.Debug("close the replication connection", "error", err)
	}
	return admin, session.System(), facts, nil
}

// lookAtLake opens the lake and reads its identity, nil if nobody has set it up.
func lookAtLake(ctx context.Context, c *config.Config) (*lake.Lake, *lake.Identity, []string) {
	l, err := openLake(ctx, c)
	if err != nil {
		return nil, nil, []string{err.Error()}
	}
	if err := l.Check(ctx); err != nil {
		return l, nil, []string{fmt.Sprintf("the lake %s: %v", l.URL(), err)}
	}
	id, err := l.ReadIdentity(ctx)
	switch {
	case errors.Is(err, lake.ErrNotFound):
		return l, nil, nil
	case err != nil:
		return l, nil, []string{fmt.Sprintf("the lake %s: %v", l.URL(), err)}
	}
	return l, &id, nil
}
