package replication

import (
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

const (
	// maxInterval is the longest time between two reports.
	maxInterval = 10 * time.Second
	// coalesce is the shortest time between two reports of a growing ack.
	coalesce = 50 * time.Millisecond
	// repeatEvery is the shortest time before a request that brings nothing new
	// is answered: a server that is shutting down asks again at once, some
	// 20,000 times a second.
	repeatEvery = 100 * time.Millisecond
)

// Status is what a standby status update reports.
type Status struct {
	// Written is how far the stream was received.
	Written change.LSN
	// Flushed, which is also reported as applied, is the ack as far as it may be
	// reported. Never above Written.
	Flushed change.LSN
}

// Feedback decides what to report and when. It holds no clock: every moment
// enters as an argument. Not safe for concurrent use.
type Feedback struct {
	// start is the slot's confirmed_flush_lsn from before the connection.
	start change.LSN
	// received is the greatest commit end or keepalive end that came on this
	// connection; zero before one has. Grows only.
	received change.LSN
	// ack is the caller's, from this connection or an earlier one. Grows only.
	ack change.LSN
	// asked says that the server awaits an answer.
	asked bool
	// last was reported at lastAt, and the next report is due at most interval
	// later.
	last     Status
	lastAt   time.Time
	interval time.Duration
}

// NewFeedback begins at the slot's confirmed_flush_lsn, as if that had been
// reported now. timeout is the server's wal_sender_timeout; zero is none.
func NewFeedback(start change.LSN, timeout time.Duration, now time.Time) *Feedback {
	return &Feedback{start: start, last: Status{Written: start, Flushed: start}, lastAt: now, interval: reportInterval(timeout)}
}

// reportInterval is at most a third of the timeout that the server sets,
// less a margin for a late timer: a quarter.
func reportInterval(timeout time.Duration) time.Duration {
	if timeout > 0 && timeout/4 < maxInterval {
		return max(timeout/4, time.Millisecond)
	}
	return maxInterval
}

// Received notes a commit end or keepalive end that came on this connection.
func (f *Feedback) Received(end change.LSN) { f.received = max(f.received, end) }

// Ack notes how far everything is safe. A lower value than before is ignored.
func (f *Feedback) Ack(lsn change.LSN) { f.ack = max(f.ack, lsn) }

// Asked notes that the server wants an answer.
func (f *Feedback) Asked() { f.asked = true }

// Status is what may be reported.
func (f *Feedback) Status() Status {
	flushed := max(f.start, min(f.ack, f.received))
	return Status{Written: max(f.received, flushed), Flushed: flushed}
}

// Due is when the next report is to go out; it may be in the past.
func (f *Feedback) Due() time.Time {
	wait := f.interval
	switch {
	case f.Status().Flushed > f.last.Flushed:
		wait = min(wait, coalesce)
	case f.asked:
		wait = min(wait, repeatEvery)
	}
	return f.lastAt.Add(wait)
}

// Take gives the status to report and notes that it goes out now.
func (f *Feedback) Take(now time.Time) Status {
	f.last, f.lastAt, f.asked = f.Status(), now, false
	return f.last
}
