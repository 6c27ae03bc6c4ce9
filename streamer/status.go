package streamer

import (
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/streamer/ring"
)

// Status is a snapshot of a Streamer, for people, metrics and health checks.
type Status struct {
	Pipeline string `json:"pipeline"`
	// State is "streaming", or says in words what is being waited for.
	State string `json:"state"`
	// Connected says whether a replication connection streams.
	Connected bool `json:"connected"`
	// Timeline is the server's; zero before the first connection.
	Timeline change.Timeline `json:"timeline"`
	// Ring gives the ring's ranges in bytes and changes.
	Ring ring.Stats `json:"ring"`
	// Received is the position of the last change in the ring, AckRecorded what
	// the lake has on record, and Last the position that this covers.
	Received    change.Position `json:"received"`
	AckRecorded change.LSN      `json:"ack"`
	Last        change.Position `json:"last"`
	// RecordedAt is when the lake's record was written last.
	RecordedAt time.Time `json:"recorded_at"`
	// InFlight lists the segments that are dispatched and not finished, in
	// stream order. The first one is what holds the ack.
	InFlight []Flight `json:"in_flight"`
	// Adopted and Reconnects count since the process began.
	Adopted    int64 `json:"adopted"`
	Reconnects int64 `json:"reconnects"`
	// SlotSeen is when the slot was last seen to be ours.
	SlotSeen time.Time `json:"slot_seen"`
}

// Status takes a snapshot. Safe for concurrent use.
func (s *Streamer) Status() Status {
	s.mu.Lock()
	l, note := s.life, s.note
	s.mu.Unlock()
	st := Status{Pipeline: s.cfg.Pipeline, State: note, InFlight: []Flight{}, Adopted: s.count.adopted.Load(), Reconnects: s.count.reconnects.Load()}
	if l == nil {
		return st
	}
	rec := l.keeper.recorded()
	st.Timeline = l.timeline
	st.Ring = l.buf.stats()
	st.Received = l.buf.lastReceived()
	st.AckRecorded, st.Last, st.RecordedAt = rec.Ack, rec.Last, rec.At
	st.InFlight = l.flights.list()
	st.SlotSeen = l.guard.lastSeen()
	l.mu.Lock()
	st.Connected = l.conn != nil
	if l.trouble != "" {
		st.State = l.trouble
	}
	l.mu.Unlock()
	return st
}
