package replication

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Transaction is one that somebody waits for.
type Transaction struct {
	// PID is the process that it is open in; zero if it is a prepared one.
	PID uint32
	// User is whose it is, and Open for how long; zero if this role may not know.
	User string
	Open time.Duration
}

// String names it for people.
func (t Transaction) String() string {
	if t.PID == 0 {
		return "a prepared transaction (pg_prepared_xacts)"
	}
	s := fmt.Sprintf("the transaction of process %d", t.PID)
	if t.User != "" {
		s += " of " + t.User
	}
	if t.Open > 0 {
		s += fmt.Sprintf(", open for %s", t.Open.Round(time.Second))
	}
	return s
}

// waitsQuery goes by the slot, which shows who makes it before it is made.
const waitsQuery = `
SELECT w.pid, coalesce(u.rolname::text, ''), coalesce(extract(epoch FROM clock_timestamp() - a.xact_start), 0)::float8
FROM pg_catalog.pg_replication_slots s,
	unnest(pg_catalog.pg_blocking_pids(s.active_pid)) AS w(pid)
	LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = w.pid
	LEFT JOIN pg_catalog.pg_roles u ON u.oid = a.usesysid
WHERE s.slot_name = $1
ORDER BY a.xact_start`

// SlotWaits gives the transactions that a slot waits for which is being made,
// the oldest first. Postgres waits for one after the other, so there may be more
// to come. There are none of a slot that waits for nothing, or is not there.
func (a *Admin) SlotWaits(ctx context.Context, name string) ([]Transaction, error) {
	var list []Transaction
	err := a.with(ctx, "ask what the slot waits for", func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, waitsQuery, name)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (t Transaction, err error) {
			var seconds float64
			err = row.Scan(&t.PID, &t.User, &seconds)
			t.Open = time.Duration(seconds * float64(time.Second))
			return t, err
		})
		return err
	})
	return list, err
}
