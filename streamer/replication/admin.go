package replication

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// Admin does by SQL what is to be done beside the stream. Each call makes its
// own connection and closes it: a permanent one would block a smart shutdown of
// the server. The zero Admin is not usable. Safe for concurrent use.
type Admin struct {
	cfg Config
	log *slog.Logger
}

// NewAdmin checks the configuration. It does not connect.
func NewAdmin(cfg Config, log *slog.Logger) (*Admin, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("prepare connections: %w", err)
	}
	return &Admin{cfg: cfg, log: log}, nil
}

// with runs f on a connection of its own. doing names what for, in the error.
func (a *Admin) with(ctx context.Context, doing string, f func(*pgx.Conn) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", doing, err)
		}
	}()
	pc, err := pgx.ParseConfig(a.cfg.ConnString)
	if err != nil {
		return unreadable(err)
	}
	if err := a.cfg.prepare(ctx, &pc.Config); err != nil {
		return err
	}
	deleteFold(pc.RuntimeParams, "replication")
	for name, value := range ordinarySettings() {
		deleteFold(pc.RuntimeParams, name)
		pc.RuntimeParams[name] = value
	}
	// No prepared statements: one round trip less, and a pooler may be between.
	pc.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(ctx, pc)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := conn.Close(ctx); cerr != nil {
			a.log.Debug("close an ordinary connection", "error", cerr)
		}
	}()
	if err := pinEncoding(ctx, conn.PgConn()); err != nil {
		return err
	}
	return f(conn)
}

// ordinarySettings keep a role's settings from changing what the statements
// mean, or from ending them: how long a call may take is its context's business.
func ordinarySettings() map[string]string {
	return map[string]string{
		"client_encoding":               "UTF8",
		"search_path":                   "pg_catalog",
		"quote_all_identifiers":         "off",
		"default_transaction_read_only": "off",
		"statement_timeout":             "0",
		"lock_timeout":                  "0",
	}
}

// FlushLSN is how far the server's WAL is on its disk now
// (pg_current_wal_flush_lsn). In recovery there is none: an error.
func (a *Admin) FlushLSN(ctx context.Context) (change.LSN, error) {
	var text string
	err := a.with(ctx, "read the end of the WAL", func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT pg_catalog.pg_current_wal_flush_lsn()::text`).Scan(&text)
	})
	if err != nil {
		return 0, err
	}
	return change.ParseLSN(text)
}
