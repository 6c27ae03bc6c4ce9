package replication

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// The reasons for which a server refuses a session or ends it. They come
// wrapped in an *Error that says what to do.
var (
	// ErrSlotInUse: another connection reads the slot. Transient: a standby
	// waits like this.
	ErrSlotInUse = errors.New("replication slot in use")
	// ErrSlotMissing: there is no slot of this name.
	ErrSlotMissing = errors.New("replication slot missing")
	// ErrSlotExists: CreateSlot found one of this name.
	ErrSlotExists = errors.New("replication slot exists")
	// ErrSlotInvalidated: the server has given up the WAL that the slot needs.
	ErrSlotInvalidated = errors.New("replication slot invalidated")
	// ErrSlotUnsuitable: the slot is of another plugin or database, or is one
	// for two-phase commit.
	ErrSlotUnsuitable = errors.New("replication slot unsuitable")
	// ErrPublicationMissing: at the WAL position that is being read there was no
	// publication of this name.
	ErrPublicationMissing = errors.New("publication missing")
	// ErrPublicationDiffers: CreatePublication found one with other tables.
	ErrPublicationDiffers = errors.New("publication differs")
	// ErrServerShutdown: the server is shutting down, or an administrator ended
	// the connection. Transient.
	ErrServerShutdown = errors.New("server shut down")
	// ErrInRecovery: the server is a standby, or has not been promoted yet.
	// Transient, since it may be.
	ErrInRecovery = errors.New("server in recovery")
	// ErrDenied: the server does not let the role in: its password, or
	// pg_hba.conf. Transient, since both are mended while a streamer waits.
	ErrDenied = errors.New("role denied")
	// ErrVersion: the server is older than 15.
	ErrVersion = errors.New("server version unsupported")
	// ErrSettings: a pinned setting did not take hold.
	ErrSettings = errors.New("session settings not in force")
	// ErrClosed: the session was closed by its owner.
	ErrClosed = errors.New("session closed")
)

// Error is a reason together with a sentence for people.
type Error struct {
	// Kind is one of the sentinel errors of this package.
	Kind error
	// Text says what happened, where, and what to do.
	Text string
	// Cause is what the server or the network said; nil if nothing was said.
	Cause error
}

func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Text
	}
	return e.Text + ": " + e.Cause.Error()
}

// Unwrap gives the reason and the cause to errors.Is and errors.As.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// phase is what a session was doing when the server reported an error. It tells
// apart errors that share a code: 42704 is a slot before the stream and a
// publication in it. (The text would tell too, but comes in lc_messages.)
type phase int

const (
	connecting phase = iota
	starting
	streaming
)

// classify turns what the server or the network said into an *Error where this
// package knows the reason, and returns it unchanged otherwise.
func (s *Session) classify(during phase, err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	slot := s.cfg.Slot
	switch code := pg.Code; {
	case code == "55006":
		return &Error{Kind: ErrSlotInUse, Cause: err,
			Text: fmt.Sprintf("replication slot %q is read by another connection: this one takes over when that ends", slot)}
	case code == "42704" && during == starting:
		return slotMissing(slot, err)
	case code == "42704" && during == streaming:
		return publicationMissing(s.cfg.Publications, err)
	case code == "58P01" && during != connecting, code == "55000" && during != connecting && saysInvalidated(pg):
		return slotInvalidated(slot, "", err)
	case code == "57P01", code == "57P02", code == "57P03", code == "57P05":
		return &Error{Kind: ErrServerShutdown, Cause: err,
			Text: "the server is shutting down or starting, or an administrator ended the connection; what was not confirmed comes again"}
	case strings.HasPrefix(code, "28"):
		return &Error{Kind: ErrDenied, Cause: err,
			Text: "the server does not let the role in: if its password was changed, put the new one where postgres.password_file, postgres.password_command or PGPASSFILE find it at each attempt, or start this process again with the new one in postgres.url or PGPASSWORD; if not, look at the role and at pg_hba.conf"}
	case code == "42501" && during == connecting:
		return fmt.Errorf("the role may not open a replication connection: ALTER ROLE ... REPLICATION (on RDS: GRANT rds_replication TO ...): %w", err)
	}
	return err
}

func saysInvalidated(pg *pgconn.PgError) bool {
	text := pg.Message + " " + pg.Detail
	return strings.Contains(text, "invalidated") || strings.Contains(text, "can no longer")
}

func slotMissing(slot string, cause error) error {
	return &Error{Kind: ErrSlotMissing, Cause: cause, Text: fmt.Sprintf(
		"replication slot %q does not exist: if this pipeline is new, run tidemark setup; if it is not, the slot was dropped or the server was replaced by one that does not have it, and rows committed since the last ack are not in the lake: tidemark setup --recreate-slot makes a new one and records the gap", slot)}
}

// slotInvalidated takes the server's word for why (invalidation_reason of
// pg_replication_slots, from 17 on), or nothing.
func slotInvalidated(slot, reason string, cause error) error {
	text := fmt.Sprintf("replication slot %q was invalidated", slot)
	do := "look at pg_replication_slots"
	switch reason {
	case "", "wal_removed":
		text += ": the server has removed WAL that it still needed (max_slot_wal_keep_size)"
		do = "raise max_slot_wal_keep_size"
	case "idle_timeout":
		text += ": nobody has read it for longer than idle_replication_slot_timeout"
		do = "set idle_replication_slot_timeout = 0"
	default:
		text += " (" + reason + ")"
	}
	return &Error{Kind: ErrSlotInvalidated, Cause: cause, Text: text + ", so rows committed since the last ack cannot be read any more; " + do + ", and run tidemark setup --recreate-slot, which makes a new one and records the gap"}
}

func publicationMissing(names []string, cause error) error {
	return &Error{Kind: ErrPublicationMissing, Cause: cause, Text: fmt.Sprintf(
		"a publication of this pipeline (%s) did not exist at the WAL position that is being read: it was made after the slot, or dropped and made again. Making it now does not help, since Postgres reads the catalog as it was at that position: drop the slot (SELECT pg_drop_replication_slot) and run tidemark setup --recreate-slot, which makes what is missing and records the gap; copy the rows in between another way",
		strings.Join(names, ", "))}
}

// IsShuttingDown says whether err is a server's way of saying that it is
// shutting down (or not up yet): SQLSTATE 57P01 admin_shutdown, 57P02
// crash_shutdown or 57P03 cannot_connect_now.
func IsShuttingDown(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	return pg.Code == "57P01" || pg.Code == "57P02" || pg.Code == "57P03"
}

// IsPooler says whether err is a pooler's refusal of a connection that sets what
// only the server itself can: PgBouncer answers "unsupported startup parameter"
// (protocol_violation, 08P01) to settings that it is not told to ignore.
func IsPooler(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "08P01" && strings.Contains(pg.Message, "startup parameter")
}

// Transient says whether it makes sense to connect again, with backoff, after
// err ended a session or kept one from being opened. False means that a person
// has to do something first, or that the session's owner ended it.
func Transient(err error) bool {
	var (
		pg          *pgconn.PgError
		parse       *pgconn.ParseConfigError
		authority   x509.UnknownAuthorityError
		host        x509.HostnameError
		certificate x509.CertificateInvalidError
	)
	switch {
	case err == nil, errors.Is(err, ErrClosed), errors.Is(err, context.Canceled):
		return false
	case errors.Is(err, ErrSlotInUse), errors.Is(err, ErrServerShutdown), errors.Is(err, ErrInRecovery), errors.Is(err, ErrDenied):
		return true
	case errors.Is(err, ErrSlotMissing), errors.Is(err, ErrSlotExists), errors.Is(err, ErrSlotInvalidated),
		errors.Is(err, ErrSlotUnsuitable), errors.Is(err, ErrPublicationMissing), errors.Is(err, ErrPublicationDiffers),
		errors.Is(err, ErrVersion), errors.Is(err, ErrSettings):
		return false
	case errors.As(err, &parse), errors.As(err, &authority), errors.As(err, &host), errors.As(err, &certificate):
		return false
	case errors.As(err, &pg):
		return transientCode(pg.Code)
	}
	return true // the network
}

// transientCode knows the classes of Appendix A of the PostgreSQL documentation
// that pass by themselves, or are mended elsewhere: connection, authorization,
// transaction rollback, insufficient resources, object in use, operator
// intervention, system and internal errors.
func transientCode(code string) bool {
	if len(code) != 5 {
		return true
	}
	switch code[:2] {
	case "08", "28", "40", "53", "57", "58", "XX":
		return true
	}
	return code == "55006"
}
