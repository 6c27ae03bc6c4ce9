package replication

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// closeBound limits Close when its context does not.
const closeBound = 3 * time.Second

// fail ends the session with a reason, unless it has one already. What the
// server still had to say is read for a moment longer: it may be the reason of
// the reason.
func (s *Session) fail(err error) {
	s.mu.Lock()
	first := s.failure == nil
	if first {
		s.failure = err
		close(s.failed)
	}
	s.mu.Unlock()
	switch {
	case !first:
	case errors.Is(err, ErrServerShutdown):
		_ = s.conn.Close() // over TLS it may take five seconds
	default:
		_ = s.conn.SetReadDeadline(time.Now().Add(time.Second))
	}
}

// Err is why the session has ended; nil while it has not.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// Close reports the final status and ends the session: Receive returns
// ErrClosed. It waits, within ctx and at most 3 s, until the server has let go
// of the slot, so that the next session can have it at once. The error says
// that the final status may not have arrived; the session is closed
// nevertheless. Later calls return the first one's error.
func (s *Session) Close(ctx context.Context) error {
	s.closing.Do(func() { s.closed = s.close(ctx) })
	return s.closed
}

func (s *Session) close(ctx context.Context) error {
	if s.conn == nil {
		close(s.failed)
		return s.pg.Close(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, closeBound)
	defer cancel()
	deadline, _ := ctx.Deadline()

	s.mu.Lock()
	alive := s.failure == nil
	if alive {
		s.failure = ErrClosed
		close(s.failed)
	}
	s.closeBy = deadline
	s.mu.Unlock()
	// Also ends a write that is under way.
	defer context.AfterFunc(ctx, func() { _ = s.conn.SetDeadline(time.Now()) })()

	_ = s.conn.SetReadDeadline(time.Now()) // ends a Receive that is under way
	<-s.sent

	err := errors.Join(s.farewell(alive, deadline), s.conn.Close())
	if alive && err != nil {
		return fmt.Errorf("close replication connection: %w", err)
	}
	return nil
}

// farewell sends the final status and the end of the session, and reads what
// the server still sends, until it hangs up. Without the reading, what was not
// read yet would make the kernel reset the connection, and the status with it.
func (s *Session) farewell(alive bool, deadline time.Time) error {
	if !alive {
		return nil
	}
	s.mu.Lock()
	status := s.feedback.Take(time.Now())
	s.mu.Unlock()
	last, err := (&pgproto3.Terminate{}).Encode(encodeStatus(status, time.Now()))
	if err != nil {
		return err
	}
	if _, err := s.conn.Write(last); err != nil {
		return fmt.Errorf("send final status %s: %w", status.Flushed, err)
	}
	s.reading.Lock()
	defer s.reading.Unlock()
	if err := s.conn.SetReadDeadline(deadline); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, s.conn); err != nil {
		s.log.Debug("the server has not hung up yet", "error", err)
	}
	return nil
}
