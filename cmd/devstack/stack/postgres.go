package stack

import (
	"context"

	"github.com/tidemark-cdc/tidemark/internal/pgtest"
)

// PostgresOptions say which Postgres cluster to run.
type PostgresOptions struct {
	// Version is 15 or 18; zero is 18 where it is installed, else 15.
	Version int
	// Settings, Env and Files are for the server; see pgtest.Options.
	Settings map[string]string
	Env      []string
	Files    map[string]string
	// Port on 127.0.0.1; zero is a free one.
	Port int
	// Dir is the cluster's folder, kept. Empty is a temporary one; in a stack that
	// keeps its folder it is "postgres" in that.
	Dir string
}

// Postgres is the stack's Postgres cluster.
type Postgres struct {
	opt    PostgresOptions
	server *pgtest.Server // nil before the first Start
}

// NewPostgres finds the programs and chooses the port; Start does the rest.
func NewPostgres(opt PostgresOptions) (*Postgres, error) {
	if opt.Version == 0 {
		opt.Version = 18
		if _, err := pgtest.Find(18); err != nil {
			opt.Version = 15
		}
	}
	if _, err := pgtest.Find(opt.Version); err != nil {
		return nil, err
	}
	if err := fill(&opt.Port); err != nil {
		return nil, err
	}
	return &Postgres{opt: opt}, nil
}

// Version is the server's major version.
func (p *Postgres) Version() int { return p.opt.Version }

// Server is the cluster's process, for what only Postgres can do. Nil before
// the first Start.
func (p *Postgres) Server() *pgtest.Server { return p.server }

// URL connects the superuser to the database postgres.
func (p *Postgres) URL() string { return p.server.URL() }

// Start makes the cluster if need be, starts it and waits until it accepts
// connections.
func (p *Postgres) Start(ctx context.Context) (err error) {
	if p.server != nil {
		if p.Running() {
			return nil
		}
		return p.server.Resume(ctx)
	}
	p.server, err = pgtest.Start(ctx, pgtest.Options{
		Version: p.opt.Version, Dir: p.opt.Dir, Port: p.opt.Port, Settings: p.opt.Settings, Env: p.opt.Env, Files: p.opt.Files,
	})
	return err
}

// Stop is a fast shutdown: it waits until every walsender's receiver has
// confirmed everything.
func (p *Postgres) Stop() error {
	if p.server == nil {
		return nil
	}
	return p.server.Stop(pgtest.Fast)
}

// Crash is an immediate shutdown: recovery at the next start.
func (p *Postgres) Crash() error {
	if p.server == nil {
		return nil
	}
	return p.server.Stop(pgtest.Immediate)
}

// Kill ends the server and its backends with SIGKILL.
func (p *Postgres) Kill() error {
	if p.server == nil {
		return nil
	}
	return p.server.Kill()
}

// Restart stops the server and starts it again, at the same address.
func (p *Postgres) Restart(ctx context.Context) error {
	if err := p.Stop(); err != nil {
		return err
	}
	return p.Start(ctx)
}

// Running says whether the server is there.
func (p *Postgres) Running() bool { return p.server != nil && p.server.PID() != 0 }

// Log is the path of the server's log.
func (p *Postgres) Log() string {
	if p.server == nil {
		return ""
	}
	return p.server.LogFile()
}

// Close stops the server at once and removes its folder if it was temporary.
func (p *Postgres) Close() error {
	if p.server == nil {
		return nil
	}
	return p.server.Close()
}
