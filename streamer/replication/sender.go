package replication

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// writeBound is how long a status update may take to be written. A server that
// takes none for so long is not there any more.
const writeBound = 30 * time.Second

// send reports the status whenever it is due, until the session has ended. Up to
// then it is the only writer of the connection.
func (s *Session) send() {
	defer close(s.sent)
	probing, endProbe := context.WithCancel(context.Background())
	probed := make(chan struct{}) // closed while no probe is under way
	close(probed)
	defer func() { endProbe(); <-probed }()

	timer := time.NewTimer(0)
	defer timer.Stop()
	ring := stall{since: time.Now()}
	for {
		s.mu.Lock()
		due := s.feedback.Due()
		s.mu.Unlock()
		timer.Reset(time.Until(due))
		select {
		case <-s.failed:
			return
		case <-s.wake:
			continue
		case <-s.suspect:
			select {
			case <-probed:
				probed = make(chan struct{})
				go func(done chan<- struct{}) {
					defer close(done)
					s.probeShutdown(probing)
				}(probed)
			default: // one at a time
			}
			continue
		case <-timer.C:
		}
		if err := s.report(); err != nil {
			s.fail(fmt.Errorf("report status to the server: %w", err))
			return
		}
		s.watchStall(&ring)
	}
}

// stall is since when the number of calls of Receive stands still.
type stall struct {
	takes uint64
	since time.Time
}

// watchStall has the server probed when nobody calls Receive: a ring without
// room keeps the server's own requests from being read.
func (s *Session) watchStall(ring *stall) {
	now := time.Now()
	if n := s.takes.Load(); n%2 == 1 || n != ring.takes {
		*ring = stall{takes: n, since: now}
		return
	}
	s.mu.Lock()
	probe := s.watch.stalled(now, ring.since)
	s.mu.Unlock()
	if probe {
		signal(s.suspect)
	}
}

// report sends what is to be reported now.
func (s *Session) report() error {
	now := time.Now()
	s.mu.Lock()
	status := s.feedback.Take(now)
	by := now.Add(writeBound)
	if !s.closeBy.IsZero() && s.closeBy.Before(by) {
		by = s.closeBy
	}
	err := s.conn.SetWriteDeadline(by)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	_, err = s.conn.Write(encodeStatus(status, now))
	return err
}

// statusLen is the length of a standby status update: its type, three LSNs, the
// time and whether an answer is wanted.
const statusLen = 1 + 3*8 + 8 + 1

// encodeStatus makes a CopyData message that holds a standby status update
// ("Standby status update (F)" in the documentation of the protocol).
func encodeStatus(st Status, now time.Time) []byte {
	b := make([]byte, 0, 1+4+statusLen+5)
	b = append(b, copyData)
	b = binary.BigEndian.AppendUint32(b, 4+statusLen)
	b = append(b, 'r')
	b = binary.BigEndian.AppendUint64(b, uint64(st.Written))
	b = binary.BigEndian.AppendUint64(b, uint64(st.Flushed))
	b = binary.BigEndian.AppendUint64(b, uint64(st.Flushed))
	b = binary.BigEndian.AppendUint64(b, uint64(change.TimeOf(now)-change.FromPostgres(0)))
	return append(b, 0)
}
