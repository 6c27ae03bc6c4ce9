package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// session is one connection that writes, and the rows that it owns: nobody else
// touches them, so it knows which there are.
type session struct {
	load *Load
	base int64 // the rows of this session have IDs above it
	next int64
	rng  *rand.Rand
	conn *pgx.Conn
	live rows
}

// errRollback makes a transaction roll back on purpose.
var errRollback = errors.New("rolled back on purpose")

func (s *session) run(ctx context.Context) error {
	defer func() {
		if s.conn != nil {
			s.conn.Close(context.WithoutCancel(ctx))
		}
	}()
	for !s.load.stopping() && ctx.Err() == nil {
		begin := time.Now()
		n, err := s.transaction(ctx)
		if err != nil {
			return err
		}
		s.pace(ctx, n, time.Since(begin))
	}
	return nil
}

// pace waits so long that n rows fit the rate.
func (s *session) pace(ctx context.Context, n int64, spent time.Duration) {
	if s.load.cfg.Rate == 0 {
		return
	}
	d := time.Duration(n)*time.Second*time.Duration(s.load.cfg.Sessions)/time.Duration(s.load.cfg.Rate) - spent
	pause(ctx, s.load.stop, d)
}

func pause(ctx context.Context, stop <-chan struct{}, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-stop:
	case <-ctx.Done():
	}
}

// transaction runs one and returns how many row changes it made. It only fails
// when the fate of a transaction cannot be found out, or on a mistake of ours.
func (s *session) transaction(ctx context.Context) (int64, error) {
	if err := s.connect(ctx); err != nil {
		return 0, nil // stopped while connecting
	}
	w := newWork(s)
	var xid string
	tx, err := s.conn.Begin(ctx)
	if err == nil {
		err = tx.QueryRow(ctx, "select pg_current_xact_id()::text").Scan(&xid)
	}
	if err == nil {
		err = w.fill(ctx, tx)
	}
	if err != nil {
		if tx != nil {
			_ = tx.Rollback(context.WithoutCancel(ctx)) // a lost connection rolls back too
		}
		if !errors.Is(err, errRollback) && !s.transient(ctx, err) {
			return 0, err
		}
		w.undo()
		s.load.rolledBack.Add(1)
		return w.counts.Total(), nil
	}
	if err := tx.Commit(ctx); err != nil {
		committed, err := s.fate(ctx, xid, err)
		if err != nil {
			return 0, err
		}
		if !committed {
			w.undo()
			s.load.rolledBack.Add(1)
			return w.counts.Total(), nil
		}
	}
	w.keep()
	s.load.committed(w.counts)
	return w.counts.Total(), nil
}

// transient says whether err is worth a new transaction: the connection or the
// server went away, or sessions waited for each other.
func (s *session) transient(ctx context.Context, err error) bool {
	var pg *pgconn.PgError
	if ctx.Err() != nil || s.conn.IsClosed() {
		return true
	}
	if !errors.As(err, &pg) {
		return false
	}
	switch pg.Code[:2] {
	case "40", "57", "08": // deadlock, operator intervention, connection
		s.conn.Close(context.WithoutCancel(ctx))
		return true
	}
	return false
}

// connect makes sure of a connection. It tries until the load stops.
func (s *session) connect(ctx context.Context) error {
	for s.conn == nil || s.conn.IsClosed() {
		conn, err := pgx.Connect(ctx, s.load.cfg.URL)
		if err == nil {
			s.conn = conn
			return nil
		}
		if s.load.stopping() || ctx.Err() != nil {
			return err
		}
		pause(ctx, s.load.stop, 100*time.Millisecond)
	}
	return nil
}

// fate asks Postgres what became of a transaction whose COMMIT was not
// answered. It waits for Postgres for up to two minutes, even when the load is
// stopping, because the counts depend on it.
func (s *session) fate(ctx context.Context, xid string, cause error) (committed bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.load.cfg.URL)
		if err == nil {
			var status *string
			err = conn.QueryRow(ctx, "select pg_xact_status($1::text::xid8)", xid).Scan(&status)
			conn.Close(ctx)
			if err == nil && status != nil && *status != "in progress" {
				return *status == "committed", nil
			}
		}
		if ctx.Err() != nil {
			return false, fmt.Errorf("find out the fate of transaction %s after %w: %w", xid, cause, errors.Join(err, ctx.Err()))
		}
		pause(ctx, nil, 100*time.Millisecond)
	}
}
