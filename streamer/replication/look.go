package replication

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Connection is what an ordinary connection shows of the way to the server.
type Connection struct {
	// Announced is the process ID that the connection was given when it was
	// made. A server gives its backend's; a pooler makes one up, since its
	// clients change backends.
	Announced uint32
	// Backends are the process IDs that statements on the connection ran in.
	Backends []uint32
	// Ahead is how far the server's clock is ahead of this machine's, negative
	// if it is behind, give or take Within.
	Ahead, Within time.Duration
}

// Pooled says that something that is not the server answers the connection.
func (c Connection) Pooled() bool {
	for _, pid := range c.Backends {
		if pid != c.Announced {
			return true
		}
	}
	return false
}

// Swapped says that statements on one connection ran in several backends, as a
// pooler in the transaction or statement mode does it: settings and slots are
// then not those of the connection.
func (c Connection) Swapped() bool {
	for _, pid := range c.Backends {
		if pid != c.Backends[0] {
			return true
		}
	}
	return false
}

// looks is how many statements Look runs.
const looks = 3

// Look makes an ordinary connection and reads what it shows. It changes
// nothing.
func (a *Admin) Look(ctx context.Context) (Connection, error) {
	var c Connection
	err := a.with(ctx, "look at the connection", func(conn *pgx.Conn) error {
		c.Announced = conn.PgConn().PID()
		for range looks {
			var pid uint32
			var seconds float64
			sent := time.Now()
			if err := conn.QueryRow(ctx, `SELECT pg_catalog.pg_backend_pid(), extract(epoch FROM clock_timestamp())::float8`).Scan(&pid, &seconds); err != nil {
				return err
			}
			took := time.Since(sent)
			// The shortest trip tells best; the server read its clock somewhere
			// on the way.
			if len(c.Backends) == 0 || took/2 < c.Within {
				c.Ahead, c.Within = time.UnixMicro(int64(seconds*1e6)).Sub(sent.Add(took/2)), took/2
			}
			c.Backends = append(c.Backends, pid)
		}
		return nil
	})
	return c, err
}
