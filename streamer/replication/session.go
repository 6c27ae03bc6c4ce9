package replication

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// System is what the server says of itself.
type System struct {
	// SystemID is the system identifier, a decimal number.
	SystemID string
	// Timeline is the server's current one.
	Timeline change.Timeline
	// WALEnd is the flushed end of the WAL when the session was opened.
	WALEnd change.LSN
	// Database that the session is connected to.
	Database string
	// ServerVersion as in server_version_num: 150004 is 15.4.
	ServerVersion int
}

// Session is one replication connection. Open, Start and History belong to one
// goroutine, and Receive to one; NoteEnd, SetAck and the getters may be called
// from anywhere at any time. Close may be called from anywhere once Start has
// returned, or instead of Start.
type Session struct {
	cfg    Config
	log    *slog.Logger
	system System
	pid    uint32
	// timeout is the wal_sender_timeout in force for this connection.
	timeout time.Duration

	// pg is the connection until Start hands it over to conn and front, which
	// are nil before. Reads from conn go through front and belong to whoever
	// holds reading; writes belong to the sender goroutine.
	pg        *pgconn.PgConn
	conn      net.Conn
	front     *pgproto3.Frontend
	arrival   *arrival
	inbound   *inbound
	more      bool // the last message's More; Receive's own
	reading   sync.Mutex
	confirmed change.LSN
	// takes counts the entries into Receive and the returns from it, where there
	// may be something to wait for: it is odd while such a Receive is under way.
	takes atomic.Uint64

	// wake tells the sender that a report may be due earlier than it thinks, and
	// suspect that the server may be shutting down.
	wake, suspect chan struct{}
	// failed is closed when failure is set. That ends the sender, which closes
	// sent.
	failed, sent chan struct{}
	closing      sync.Once
	closed       error

	mu       sync.Mutex
	feedback *Feedback
	watch    shutdownWatch
	// failure is why the session has ended; set once.
	failure error
	// closeBy limits all writes once Close was called.
	closeBy time.Time
}

func newSession(cfg Config, log *slog.Logger) *Session {
	return &Session{cfg: cfg, log: log, wake: make(chan struct{}, 1), suspect: make(chan struct{}, 1),
		failed: make(chan struct{}), sent: make(chan struct{}), feedback: NewFeedback(0, 0, time.Time{})}
}

// Open connects and pins the session's settings. It refuses a server that is
// older than 15 or in recovery. ctx bounds the opening only.
func Open(ctx context.Context, cfg Config, log *slog.Logger) (*Session, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("open replication connection: %w", err)
	}
	pc, err := cfg.streaming(ctx)
	if err != nil {
		return nil, fmt.Errorf("open replication connection: %w", err)
	}
	s := newSession(cfg, log)
	pc.BuildFrontend = s.frontend
	pc.DialFunc = calmly(pc.DialFunc)
	if s.pg, err = pgconn.ConnectConfig(ctx, pc); err != nil {
		return nil, fmt.Errorf("open replication connection: %w", s.classify(connecting, err))
	}
	s.pid = s.pg.PID()
	if err := s.identify(ctx); err != nil {
		_ = s.pg.Close(ctx)
		return nil, fmt.Errorf("open replication connection to database %s: %w", pc.Database, s.classify(connecting, err))
	}
	return s, nil
}

// identify asks who the server is and makes it the right one.
func (s *Session) identify(ctx context.Context) error {
	row, err := queryRow(ctx, s.pg, `SELECT current_setting('server_version_num'), pg_is_in_recovery(),
		(SELECT setting FROM pg_catalog.pg_settings WHERE name = 'wal_sender_timeout')`, 3)
	if err != nil {
		return fmt.Errorf("read server version: %w", err)
	}
	version, err := strconv.Atoi(row[0])
	if err != nil {
		return fmt.Errorf("read server version: %w", err)
	}
	if version < minVersion {
		return &Error{Kind: ErrVersion, Text: unsupportedVersion(version)}
	}
	if row[1] == "t" {
		return &Error{Kind: ErrInRecovery, Text: "the server is in recovery (a standby): connect to the primary, or promote it"}
	}
	millis, err := strconv.Atoi(row[2])
	if err != nil {
		return fmt.Errorf("read wal_sender_timeout: %w", err)
	}
	s.timeout = time.Duration(millis) * time.Millisecond
	if version >= 170000 {
		// Decoding runs in a transaction, which a full ring can hold up for long.
		if _, err := s.pg.Exec(ctx, "SET transaction_timeout = 0").ReadAll(); err != nil {
			return fmt.Errorf("set transaction_timeout: %w", err)
		}
	}
	if err := pinEncoding(ctx, s.pg); err != nil {
		return err
	}
	if err := verifyPinned(ctx, s.pg); err != nil {
		return err
	}
	id, err := pglogrepl.IdentifySystem(ctx, s.pg)
	if err != nil {
		return fmt.Errorf("identify system: %w", err)
	}
	s.system = System{SystemID: id.SystemID, Timeline: change.Timeline(id.Timeline), WALEnd: change.LSN(id.XLogPos),
		Database: id.DBName, ServerVersion: version}
	return nil
}

// System is what the server said of itself when the session was opened.
func (s *Session) System() System { return s.system }

// PID is the process ID of the server's walsender, to be compared with the
// slot's active_pid.
func (s *Session) PID() uint32 { return s.pid }

// WALSenderTimeout is the timeout in force for this connection; zero is none.
func (s *Session) WALSenderTimeout() time.Duration { return s.timeout }

// ConfirmedFlush is the slot's confirmed_flush_lsn as Start found it: where the
// stream begins.
func (s *Session) ConfirmedFlush() change.LSN { return s.confirmed }

// History reads the history of the server's timeline. Only before Start.
func (s *Session) History(ctx context.Context) (History, error) {
	if s.system.Timeline <= 1 {
		// The first timeline has no history file.
		return History{Current: s.system.Timeline}, nil
	}
	file, err := pglogrepl.TimelineHistory(ctx, s.pg, int32(s.system.Timeline))
	if err != nil {
		return History{}, fmt.Errorf("read history of timeline %d: %w", s.system.Timeline, err)
	}
	return ParseHistory(s.system.Timeline, file.Content)
}

// NoteEnd notes the end LSN of a commit that came on this connection: up to
// there an ack may be reported. Keepalive ends are noted by Receive.
func (s *Session) NoteEnd(end change.LSN) { s.advance(func(f *Feedback) { f.Received(end) }) }

// SetAck says that everything below lsn is in the lake for good. A lower value
// than before is ignored. It may be set before Start.
func (s *Session) SetAck(lsn change.LSN) { s.advance(func(f *Feedback) { f.Ack(lsn) }) }

// Reported is when the last status update was sent; before the first, when the
// stream began, and zero before that.
func (s *Session) Reported() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.feedback.lastAt
}

// advance changes the feedback and wakes the sender if a report has become due
// earlier by it.
func (s *Session) advance(apply func(*Feedback)) {
	s.mu.Lock()
	before := s.feedback.Due()
	apply(s.feedback)
	earlier := s.feedback.Due().Before(before)
	s.mu.Unlock()
	if earlier {
		signal(s.wake)
	}
}

// signal never waits: a signal that was not taken yet stands for this one too.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Failed is closed when the session has ended by itself; Receive returns why.
// It is also closed by Close.
func (s *Session) Failed() <-chan struct{} { return s.failed }
