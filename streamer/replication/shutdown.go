package replication

import (
	"context"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

const (
	// suspicious is how many requests in a row, with nothing moving, make a
	// server look as if it were shutting down.
	suspicious = 3
	// stallBound is how long nothing may have been received for want of room
	// before the server is probed.
	stallBound = 5 * time.Second
	// probeEvery is the shortest time between two probes.
	probeEvery = 10 * time.Second
	probeBound = 5 * time.Second
)

// shutdownWatch decides when to find out whether the server is shutting down.
// A server that is asks for a reply again and again, with an unmoving WAL end
// above an ack that does not move either. It holds no clock.
type shutdownWatch struct {
	grace time.Duration
	// asks counts the requests since since that came with the same end and
	// found the same flushed.
	asks    int
	end     change.LSN
	flushed change.LSN
	since   time.Time
	// notBefore is when the next probe may be made.
	notBefore time.Time
}

// asked takes a reply request that came with a WAL end while flushed was the
// LSN to report. It says whether to probe now.
func (w *shutdownWatch) asked(now time.Time, end, flushed change.LSN) bool {
	if end <= flushed {
		w.asks = 0
		return false
	}
	if w.asks == 0 || end != w.end || flushed != w.flushed {
		w.asks, w.end, w.flushed, w.since = 1, end, flushed, now
		return false
	}
	w.asks++
	return w.asks >= suspicious && now.Sub(w.since) >= w.grace && w.probe(now)
}

// stalled takes how long no message could be taken for want of room in the
// ring; the server's requests are not seen then. It says whether to probe now.
func (w *shutdownWatch) stalled(now time.Time, since time.Time) bool {
	return now.Sub(since) >= stallBound && w.probe(now)
}

// probe says whether a probe may be made now, and counts it as made.
func (w *shutdownWatch) probe(now time.Time) bool {
	if now.Before(w.notBefore) {
		return false
	}
	w.notBefore = now.Add(probeEvery)
	return true
}

// probeShutdown ends the session if the server says that it is shutting down.
// Any other answer, or none, means nothing: the connection itself tells.
func (s *Session) probeShutdown(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeBound)
	defer cancel()
	err := s.cfg.probe(ctx)
	if !IsShuttingDown(err) {
		s.log.Debug("the ack cannot move and the server keeps asking; it is not shutting down", "probe", err)
		return
	}
	s.fail(&Error{Kind: ErrServerShutdown, Cause: err,
		Text: "the server is shutting down and waits for rows that are not in the lake yet; they come again after its restart"})
}
