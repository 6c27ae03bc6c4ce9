// Package readback asks the database for TOASTed values that Postgres did not
// send, since an update had not changed them.
//
// What the database holds now need not be what the change left: a later update
// may have been there. So a value is taken only from the very row version that
// the change made: the one whose xmin is the change's transaction. Then it is
// exact. If that version is gone, or was made in a subtransaction (whose ID is
// not the transaction's), there is no answer, and the column stays named in
// `unchanged`.
//
// Activities call it; it is off unless the worker is given a database.
package readback

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// Reader asks on one connection, which it makes when it is first needed and
// again after it broke. Safe for concurrent use; questions wait for each other.
type Reader struct {
	config   func(context.Context) (*pgconn.Config, error)
	settings map[string]string

	mu   sync.Mutex
	conn *pgconn.PgConn // nil until needed
}

// New makes a Reader of the database that config connects to; config is called
// for each connection, and what it gives is the Reader's. Settings are pinned
// for its sessions, so that values have the text that they have in the stream.
// It does not connect.
func New(config func(context.Context) (*pgconn.Config, error), settings map[string]string) *Reader {
	return &Reader{config: config, settings: settings}
}

func (r *Reader) connect(ctx context.Context) (*pgconn.PgConn, error) {
	cfg, err := r.config(ctx)
	if err != nil {
		return nil, err
	}
	for name, value := range r.settings {
		// Names of settings have no case: another spelling would compete.
		maps.DeleteFunc(cfg.RuntimeParams, func(other, _ string) bool { return strings.EqualFold(other, name) })
		cfg.RuntimeParams[name] = value
	}
	cfg.RuntimeParams["default_transaction_read_only"] = "on"
	return pgconn.ConnectConfig(ctx, cfg)
}

// Values gives the text of columns of the row that key names in the table rel,
// in their order and as the stream has them; nil is NULL. found is false if the
// row version that transaction xid made is no longer, or not yet, the current
// one, or if table or columns have changed their names since.
//
// An error is one of the connection or of permissions, worth another try.
func (r *Reader) Values(ctx context.Context, rel *change.Relation, key []change.KeyValue, xid uint32, columns []string) (texts [][]byte, found bool, err error) {
	if len(key) == 0 || len(columns) == 0 {
		return nil, false, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	texts, found, err = r.values(ctx, rel, key, xid, columns)
	var pg *pgconn.PgError
	switch {
	case err == nil:
		return texts, found, nil
	case errors.As(err, &pg) && (pg.Code == undefinedColumn || pg.Code == undefinedTable || pg.Code == undefinedFunction):
		return nil, false, nil
	case !errors.As(err, &pg):
		r.drop(ctx)
	}
	return nil, false, fmt.Errorf("read back %s of table %s: %w", strings.Join(columns, ", "), rel.QualifiedName(), err)
}

// What a question about a table that has changed since is answered with
// (Appendix A of the PostgreSQL documentation). undefined_function is a key
// whose type has no equality.
const (
	undefinedColumn   = "42703"
	undefinedTable    = "42P01"
	undefinedFunction = "42883"
)

func (r *Reader) values(ctx context.Context, rel *change.Relation, key []change.KeyValue, xid uint32, columns []string) ([][]byte, bool, error) {
	if r.conn == nil {
		conn, err := r.connect(ctx)
		if err != nil {
			return nil, false, err
		}
		r.conn = conn
	}
	table, err := r.table(ctx, rel.OID)
	if err != nil || table == "" {
		return nil, false, err
	}
	var sql strings.Builder
	sql.WriteString("SELECT ")
	for i, c := range columns {
		if i > 0 {
			sql.WriteString(", ")
		}
		sql.WriteString("t." + pgx.Identifier{c}.Sanitize())
	}
	sql.WriteString(" FROM " + table + " t WHERE t.xmin = $1")
	args := [][]byte{strconv.AppendUint(nil, uint64(xid), 10)}
	for _, k := range key {
		args = append(args, k.Text)
		fmt.Fprintf(&sql, " AND t.%s = $%d", pgx.Identifier{k.Column}.Sanitize(), len(args))
	}
	// Without types the server takes each parameter for its column's, as text.
	res := r.conn.ExecParams(ctx, sql.String(), args, nil, nil, nil).Read()
	if res.Err != nil || len(res.Rows) != 1 {
		return nil, false, res.Err
	}
	return res.Rows[0], true, nil
}

// table is the present name of a table, ready for SQL, or empty if it is gone.
// It is asked each time: a table can be renamed, and another one take its name.
func (r *Reader) table(ctx context.Context, oid uint32) (string, error) {
	res := r.conn.ExecParams(ctx,
		"SELECT pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1",
		[][]byte{strconv.AppendUint(nil, uint64(oid), 10)}, nil, nil, nil).Read()
	if res.Err != nil || len(res.Rows) != 1 {
		return "", res.Err
	}
	return string(res.Rows[0][0]), nil
}

func (r *Reader) drop(ctx context.Context) {
	if r.conn != nil {
		_ = r.conn.Close(ctx) // it is broken, or about to be replaced
		r.conn = nil
	}
}

// Close ends the connection.
func (r *Reader) Close(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(ctx)
}
