package replication

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// Start asks for the slot's changes, from the slot's own position on. After an
// error the session is good for nothing but Close.
func (s *Session) Start(ctx context.Context) error {
	if s.conn != nil {
		return errors.New("start replication: it was started already")
	}
	if len(s.cfg.Publications) == 0 {
		return errors.New("start replication: no publication is configured: name at least one")
	}
	if err := s.inspectSlot(ctx); err != nil {
		return fmt.Errorf("start replication: %w", s.classify(starting, err))
	}
	// 0/0 is the slot's confirmed_flush_lsn (CreateDecodingContext in
	// src/backend/replication/logical/logical.c).
	err := pglogrepl.StartReplication(ctx, s.pg, s.cfg.Slot, 0, pglogrepl.StartReplicationOptions{
		Mode:       pglogrepl.LogicalReplication,
		PluginArgs: []string{"proto_version '1'", "messages 'true'", "publication_names " + literal(identifiers(s.cfg.Publications))},
	})
	if err != nil {
		return fmt.Errorf("start replication: %w", s.classify(starting, err))
	}
	// From here on reads and writes are two goroutines' business, which pgconn
	// does not know of.
	raw, err := s.pg.Hijack()
	if err != nil {
		return fmt.Errorf("start replication: %w", err)
	}
	if err := raw.Conn.SetDeadline(time.Time{}); err != nil {
		_ = raw.Conn.Close()
		return fmt.Errorf("start replication: %w", err)
	}
	s.stream(raw.Conn, raw.Frontend)
	return nil
}

// stream begins to report on a connection that streams.
func (s *Session) stream(conn net.Conn, front *pgproto3.Frontend) {
	s.conn, s.front = conn, front
	s.mu.Lock()
	acked := s.feedback.ack
	s.feedback = NewFeedback(s.confirmed, s.timeout, time.Now())
	s.feedback.Ack(acked)
	s.watch = shutdownWatch{grace: s.cfg.grace()}
	s.mu.Unlock()
	go s.send()
}

// inspectSlot reads the slot's position, and refuses a slot that the stream
// cannot be read from.
func (s *Session) inspectSlot(ctx context.Context) error {
	// The name was checked: it needs no quoting.
	rows, err := queryRows(ctx, s.pg, `SELECT plugin, database, two_phase, wal_status, confirmed_flush_lsn, slot_type, pg_catalog.to_jsonb(s) ->> 'invalidation_reason'
		FROM pg_catalog.pg_replication_slots s WHERE slot_name = '`+s.cfg.Slot+`'`, 7)
	if err != nil {
		return fmt.Errorf("read slot: %w", err)
	}
	if len(rows) == 0 {
		return slotMissing(s.cfg.Slot, nil)
	}
	plugin, database, twoPhase, status, confirmed, kind := rows[0][0], rows[0][1], rows[0][2], rows[0][3], rows[0][4], rows[0][5]
	if reason := rows[0][6]; status == walLost || reason != "" {
		return slotInvalidated(s.cfg.Slot, reason, nil)
	}
	if text := unsuitable(s.cfg.Slot, kind, plugin, database, s.system.Database, twoPhase == "t"); text != "" {
		return &Error{Kind: ErrSlotUnsuitable, Text: text}
	}
	if s.confirmed, err = change.ParseLSN(confirmed); err != nil {
		return fmt.Errorf("read slot: %w", err)
	}
	return nil
}

// identifiers is the list form of publication_names: each name in double
// quotes.
func identifiers(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = pgx.Identifier{n}.Sanitize()
	}
	return strings.Join(quoted, ",")
}

// literal quotes a string of a replication command.
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
