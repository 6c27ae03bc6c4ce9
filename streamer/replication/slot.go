package replication

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// SlotInfo is a row of pg_replication_slots. What a version does not know is
// zero.
type SlotInfo struct {
	Name     string `json:"slot_name"`
	Type     string `json:"slot_type"`
	Plugin   string `json:"plugin"`
	Database string `json:"database"`
	// Temporary, TwoPhase, Failover (17) and Synced (17) as the slot was made.
	Temporary bool `json:"temporary"`
	TwoPhase  bool `json:"two_phase"`
	Failover  bool `json:"failover"`
	Synced    bool `json:"synced"`
	// ActivePID is the walsender that reads the slot, zero when not Active.
	Active         bool       `json:"active"`
	ActivePID      uint32     `json:"active_pid"`
	ConfirmedFlush change.LSN `json:"confirmed_flush_lsn"`
	RestartLSN     change.LSN `json:"restart_lsn"`
	// WALStatus is reserved, extended, unreserved or lost.
	WALStatus string `json:"wal_status"`
	// SafeWALSize is how many bytes may still be written before the slot can be
	// lost; nil without a limit.
	SafeWALSize        *int64 `json:"safe_wal_size"`
	InvalidationReason string `json:"invalidation_reason"`
	// LagBytes is the WAL behind the ack, RetainedBytes what the slot keeps.
	LagBytes      int64 `json:"lag_bytes"`
	RetainedBytes int64 `json:"retained_bytes"`
}

// Lost says that the slot cannot be read any more.
func (s SlotInfo) Lost() bool { return s.WALStatus == walLost || s.InvalidationReason != "" }

// slotQuery gives the row as JSON, so that one query suits all versions.
const slotQuery = `
SELECT pg_catalog.to_jsonb(s) || pg_catalog.jsonb_build_object(
	'lag_bytes', coalesce(pg_wal_lsn_diff(e.lsn, s.confirmed_flush_lsn), 0)::bigint,
	'retained_bytes', coalesce(pg_wal_lsn_diff(e.lsn, s.restart_lsn), 0)::bigint)
FROM pg_catalog.pg_replication_slots s,
	(SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END) AS e(lsn)
WHERE s.slot_name = $1`

// readSlot gives nil if there is no slot of this name.
func readSlot(ctx context.Context, conn *pgx.Conn, name string) (*SlotInfo, error) {
	var raw []byte
	err := conn.QueryRow(ctx, slotQuery, name).Scan(&raw)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read slot %s: %w", name, err)
	}
	var s SlotInfo
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("read slot %s: %w", name, err)
	}
	return &s, nil
}

// Slot reads the slot of the configuration. ErrSlotMissing if there is none.
func (a *Admin) Slot(ctx context.Context) (SlotInfo, error) { return a.slot(ctx, a.cfg.Slot) }

func (a *Admin) slot(ctx context.Context, name string) (SlotInfo, error) {
	var s *SlotInfo
	err := a.with(ctx, "look at the slot", func(conn *pgx.Conn) (err error) {
		if s, err = readSlot(ctx, conn, name); err == nil && s == nil {
			err = slotMissing(name, nil)
		}
		return err
	})
	if err != nil {
		return SlotInfo{}, err
	}
	return *s, nil
}

// SlotOwner is the process ID of the walsender that reads the slot; zero if
// nobody does. ErrSlotMissing if there is no such slot.
func (a *Admin) SlotOwner(ctx context.Context, name string) (uint32, error) {
	s, err := a.slot(ctx, name)
	return s.ActivePID, err
}

// CreateSlot makes a permanent logical slot of pgoutput and gives the LSN at
// which its stream starts. It waits for the transactions that are running, as
// long as ctx lets it; when ctx has ended the server has given up too. failover
// lets standbys synchronize the slot, and is an error below 17. ErrSlotExists if
// there is a slot of this name.
func (a *Admin) CreateSlot(ctx context.Context, name string, failover bool) (change.LSN, error) {
	if !slotName.MatchString(name) {
		return 0, fmt.Errorf("create slot %q: use 1 to 63 lower-case letters, digits and underscores", name)
	}
	var text string
	err := a.with(ctx, fmt.Sprintf("create slot %q", name), func(conn *pgx.Conn) error {
		call := `SELECT lsn::text FROM pg_catalog.pg_create_logical_replication_slot($1, '` + plugin + `', false, false)`
		if failover {
			call = `SELECT lsn::text FROM pg_catalog.pg_create_logical_replication_slot($1, '` + plugin + `', false, false, true)`
		}
		err := conn.QueryRow(ctx, call, name).Scan(&text)
		if ctx.Err() != nil && conn.IsClosed() {
			// The server goes on until it is told to stop, which closing does, for
			// 15 s at most: a slot that is made after all is nobody's, and keeps WAL
			// for ever.
			<-conn.PgConn().CleanupDone()
		}
		var pg *pgconn.PgError
		if errors.As(err, &pg) {
			switch {
			case pg.Code == "42710":
				return &Error{Kind: ErrSlotExists, Cause: err, Text: "there is a slot of this name already: use it, or choose another name"}
			case pg.Code == "42883" && failover:
				return fmt.Errorf("the server cannot make slots that survive a failover, 17 and later can: leave that option out: %w", err)
			case pg.Code == "53400":
				return fmt.Errorf("all replication slots are in use: raise max_replication_slots or drop a slot that nobody reads: %w", err)
			case pg.Code == "42501":
				return fmt.Errorf("the role may not make slots: ALTER ROLE ... REPLICATION (on RDS: GRANT rds_replication TO ...): %w", err)
			}
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return change.ParseLSN(text)
}

// DropSlot drops a slot and says whether there was one. It refuses one that is
// being read: ErrSlotInUse.
func (a *Admin) DropSlot(ctx context.Context, name string) (dropped bool, err error) {
	err = a.with(ctx, fmt.Sprintf("drop slot %q", name), func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `SELECT pg_catalog.pg_drop_replication_slot($1)`, name)
		var pg *pgconn.PgError
		switch {
		case err == nil:
			dropped = true
		case errors.As(err, &pg) && pg.Code == "42704":
			return nil
		case errors.As(err, &pg) && pg.Code == "55006":
			return &Error{Kind: ErrSlotInUse, Cause: err, Text: "the slot is being read: stop the streamer that reads it first"}
		}
		return err
	})
	return dropped, err
}
