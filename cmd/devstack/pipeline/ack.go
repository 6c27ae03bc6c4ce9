package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// End is the end of what is written to the log now: everything that has been
// committed lies before it.
func End(ctx context.Context, conn *pgx.Conn) (lsn string, err error) {
	if err := conn.QueryRow(ctx, "select pg_current_wal_insert_lsn()::text").Scan(&lsn); err != nil {
		return "", fmt.Errorf("ask for the end of the log: %w", err)
	}
	return lsn, nil
}

// Ack is what the slot has confirmed, and how many bytes that is behind the end
// of the log.
func Ack(ctx context.Context, conn *pgx.Conn, slot string) (lsn string, lag int64, err error) {
	err = conn.QueryRow(ctx, `select confirmed_flush_lsn::text, (pg_current_wal_lsn() - confirmed_flush_lsn)::bigint
		from pg_replication_slots where slot_name = $1`, slot).Scan(&lsn, &lag)
	if err != nil {
		return "", 0, fmt.Errorf("ask for the ack of slot %s: %w", slot, err)
	}
	return lsn, lag, nil
}

// WaitAck waits until the slot has confirmed everything before lsn, or ctx
// ends. While it waits it calls each, which may be nil, with the bytes that are
// missing; an error from each ends it.
func WaitAck(ctx context.Context, conn *pgx.Conn, slot, lsn string, each func(missing int64) error) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var missing int64
	for {
		err := conn.QueryRow(ctx, `select ($2::text::pg_lsn - confirmed_flush_lsn)::bigint
			from pg_replication_slots where slot_name = $1`, slot, lsn).Scan(&missing)
		if err != nil {
			return fmt.Errorf("wait for slot %s to confirm %s: %w", slot, lsn, err)
		}
		if missing <= 0 {
			return nil
		}
		if each != nil {
			if err := each(missing); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for slot %s to confirm %s: %d bytes are missing: %w", slot, lsn, missing, context.Cause(ctx))
		case <-tick.C:
		}
	}
}
