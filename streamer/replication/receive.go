package replication

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// Message is one message of the stream: a keepalive, or a piece of WAL as the
// plugin decoded it.
type Message struct {
	// Keepalive says that the message carries no data.
	Keepalive bool
	// ReplyRequested is a keepalive's request for a status update. The session
	// answers it by itself; whoever can let the ack grow should do so.
	ReplyRequested bool
	// WALStart is the change's LSN; zero in a keepalive.
	WALStart change.LSN
	// WALEnd of a keepalive is how far the server has sent; of data it is the
	// same as WALStart and says nothing.
	WALEnd change.LSN
	// Arrived is when the last bytes of a message with data were taken from the
	// kernel. Messages that came together have the same.
	Arrived time.Time
	// Data is the plugin's message. It stays as it is until the next Receive.
	Data []byte
	// More says that the next Receive has nothing to wait for.
	More bool
}

// The messages inside CopyData ("Streaming Replication Protocol" in the
// documentation), with the lengths of what comes before any payload.
const (
	dataType, dataLen           = 'w', 1 + 3*8
	keepaliveType, keepaliveLen = 'k', 1 + 2*8 + 1
)

// Receive waits for the next message, for as long as it takes: only the end of
// the connection or Close ends it. It belongs to one goroutine. An error is
// final, every later call returns one too; Transient says what to do about it.
func (s *Session) Receive() (Message, error) {
	if s.front == nil {
		return Message{}, errors.New("receive: the stream was not started")
	}
	if m, ok := s.atHand(); ok {
		return m, nil
	}
	s.takes.Add(1)
	defer s.takes.Add(1)
	if !s.reading.TryLock() {
		// Nobody else reads before the session is closed.
		return Message{}, fmt.Errorf("receive: %w", ErrClosed)
	}
	defer s.reading.Unlock()
	s.more = false
	for {
		m, done, err := s.receive()
		if err != nil {
			s.fail(err)
			// What had ended the session before explains a broken connection;
			// what the server says explains what had ended the session.
			reason := s.Err()
			if reason != ErrClosed && fromServer(err) {
				reason = err
			}
			return Message{}, fmt.Errorf("receive: %w", reason)
		}
		if done {
			s.more = s.inbound.more()
			m.More = s.more
			return m, nil
		}
	}
}

// atHand gives the next message if it is in memory and the session goes on. It
// leaves out what guards a wait, which takes more time than all the rest.
func (s *Session) atHand() (m Message, ok bool) {
	if !s.more {
		return Message{}, false
	}
	select {
	case <-s.failed:
		return Message{}, false
	default:
	}
	data, ok, err := s.inbound.data()
	if err == nil && ok {
		m, err = s.parse(data)
	}
	if err != nil || !ok {
		s.inbound.back() // receive says what is wrong
		return Message{}, false
	}
	s.more = s.inbound.more()
	m.More = s.more
	return m, true
}

func fromServer(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg)
}

// receive takes one message of the protocol. done says that it is one for the
// caller.
func (s *Session) receive() (m Message, done bool, err error) {
	if s.Err() == ErrClosed {
		return Message{}, false, ErrClosed
	}
	data, ok, err := s.inbound.data()
	if ok {
		m, err = s.parse(data)
		return m, true, err
	}
	var msg pgproto3.BackendMessage
	if err == nil {
		msg, err = s.front.Receive()
	}
	if err != nil {
		return Message{}, false, fmt.Errorf("the connection to the server broke: %w", err)
	}
	switch msg := msg.(type) {
	case *pgproto3.ErrorResponse:
		return Message{}, false, s.classify(streaming, pgconn.ErrorResponseToPgError(msg))
	case *pgproto3.CopyDone, *pgproto3.CommandComplete:
		// A walsender ends the stream by itself only when its server is shutting
		// down and everything is confirmed (WalSndDone in walsender.c).
		return Message{}, false, &Error{Kind: ErrServerShutdown, Text: "the server is shutting down and has ended the stream; everything was confirmed"}
	case *pgproto3.NoticeResponse:
		return Message{}, false, s.notice(msg)
	default:
		return Message{}, false, nil // ParameterStatus and the like
	}
}

// parse reads a CopyData payload and notes what it says for the feedback.
func (s *Session) parse(b []byte) (Message, error) {
	switch {
	case len(b) >= dataLen && b[0] == dataType:
		return Message{
			WALStart: change.LSN(binary.BigEndian.Uint64(b[1:])),
			WALEnd:   change.LSN(binary.BigEndian.Uint64(b[9:])),
			Arrived:  s.arrival.at,
			Data:     b[dataLen:],
		}, nil
	case len(b) == keepaliveLen && b[0] == keepaliveType:
		m := Message{Keepalive: true, WALEnd: change.LSN(binary.BigEndian.Uint64(b[1:])), ReplyRequested: b[17] != 0}
		s.keepalive(m)
		return m, nil
	case len(b) == 0:
		return Message{}, fmt.Errorf("the server sent an empty CopyData message")
	default:
		return Message{}, fmt.Errorf("the server sent a CopyData message of type %q and %d bytes, which is none of the streaming replication protocol", b[0], len(b))
	}
}

// keepalive notes a keepalive's end and request.
func (s *Session) keepalive(m Message) {
	s.advance(func(f *Feedback) {
		f.Received(m.WALEnd)
		if m.ReplyRequested {
			f.Asked()
		}
	})
	if !m.ReplyRequested {
		return
	}
	s.mu.Lock()
	probe := s.watch.asked(time.Now(), m.WALEnd, s.feedback.Status().Flushed)
	s.mu.Unlock()
	if probe {
		signal(s.suspect)
	}
}

// notice logs what the server has to say, and takes one warning for the error
// that it is: 18 goes on without a publication that it does not find
// (LoadPublications in pgoutput.c), so its tables' rows would be left out.
func (s *Session) notice(n *pgproto3.NoticeResponse) error {
	attrs := []any{"message", n.Message, "sqlstate", n.Code, "detail", n.Detail, "hint", n.Hint}
	if n.SeverityUnlocalized != "WARNING" {
		s.log.Debug("notice from the server", attrs...)
		return nil
	}
	if n.Routine == "LoadPublications" {
		return publicationMissing(s.cfg.Publications, pgconn.ErrorResponseToPgError((*pgproto3.ErrorResponse)(n)))
	}
	s.log.Warn("warning from the server", attrs...)
	return nil
}

// frontend reads the protocol from r. It takes many of Postgres' 8 KiB writes
// with one system call.
func (s *Session) frontend(r io.Reader, w io.Writer) *pgproto3.Frontend {
	s.arrival = &arrival{r: r}
	s.inbound = &inbound{r: bufio.NewReaderSize(s.arrival, readBuffer)}
	return pgproto3.NewFrontend(s.inbound, w)
}

// arrival notes when something was last read from r: one look at the clock for
// all the messages that came together.
type arrival struct {
	r  io.Reader
	at time.Time
}

func (a *arrival) Read(p []byte) (int, error) {
	n, err := a.r.Read(p)
	a.at = time.Now()
	return n, err
}
