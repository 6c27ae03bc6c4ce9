package streamer

import (
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
	"github.com/tidemark-cdc/tidemark/streamer/ring"
)

// Status is a snapshot of a Streamer, for people, metrics and health checks.
type Status struct {
	Pipeline string `json:"pipeline"`
	// State is "streaming", or says in words what is being waited for; Phase is
	// the same in one of a few words.
	State string `json:"state"`
	Phase Phase  `json:"phase"`
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
	// Recording is the write of that record that is under way; nil without one.
	Recording *Recording `json:"recording,omitempty"`
	// InFlight lists the segments that are dispatched and not finished, in
	// stream order. The first one is what holds the ack.
	InFlight []Flight `json:"in_flight"`
	// HeldSince is when everything before InFlight's first one had finished, so
	// that the ack has stood there since; zero without one.
	HeldSince time.Time `json:"held_since,omitzero"`
	// Ahead lists the segments that are finished behind one that is not, in stream
	// order; at most 256 of Ring.FinishedSegments.
	Ahead []Flight `json:"ahead"`
	// Adopted and Reconnects count since the process began.
	Adopted    int64 `json:"adopted"`
	Reconnects int64 `json:"reconnects"`
	// SlotSeen is when the slot was last seen to be ours, Slot how it was seen
	// last, a few seconds ago while Postgres answers; nil before.
	SlotSeen time.Time             `json:"slot_seen"`
	Slot     *replication.SlotInfo `json:"slot"`
	// Reported is when the last status update was sent on the present connection;
	// zero while there is none.
	Reported time.Time `json:"reported"`
	// ReceivedChanges, by operation, and ReceivedBytes count what went into the
	// ring since the process began, without what was repeated to it. Bytes are
	// those of raw messages.
	ReceivedChanges map[string]int64 `json:"received_changes"`
	ReceivedBytes   int64            `json:"received_bytes"`
	// Drift lists the wanted tables that have left the publication, were dropped
	// or made anew since the process began, as seen at the last look, which is at
	// most a minute old while Postgres answers.
	Drift []Drift `json:"drift"`
	// WAL is what Postgres keeps for the slot, as seen at the last look, whoever
	// reads it; nil before.
	WAL *WAL `json:"wal"`
	// Paused says by whom, since when and why nothing is dispatched; nil if the
	// pipeline is not paused, or this process has never had the slot.
	Paused *lake.Pause `json:"paused"`
}

// Phase is what a Streamer is doing.
type Phase string

// The phases. Every one but Streaming means that nothing is received.
const (
	Connecting Phase = "connecting"
	Streaming  Phase = "streaming"
	Standby    Phase = "standby"
	Stopped    Phase = "stopped"
)

// Phases lists them all.
func Phases() []Phase { return []Phase{Connecting, Streaming, Standby, Stopped} }

// What setLife and setTrouble are told for two of the phases.
const (
	noteStandby = "standby: another process streams from the slot"
	noteStopped = "stopped"
)

func phaseOf(connected bool, state string) Phase {
	switch {
	case connected:
		return Streaming
	case state == noteStandby:
		return Standby
	case state == noteStopped:
		return Stopped
	}
	return Connecting
}

// Status takes a snapshot. Safe for concurrent use.
func (s *Streamer) Status() Status {
	s.mu.Lock()
	l, received := s.life, s.before
	st := Status{Pipeline: s.cfg.Pipeline, State: s.note, InFlight: []Flight{}, Ahead: []Flight{}, Adopted: s.count.adopted.Load(), Reconnects: s.count.reconnects.Load()}
	s.mu.Unlock()
	if l != nil {
		received.addAll(l.fill(&st))
	}
	st.Phase = phaseOf(st.Connected, st.State)
	st.ReceivedChanges, st.ReceivedBytes = received.byOperation(), received.bytes
	st.Drift, st.WAL = s.drift.list(), s.wal.get()
	st.Paused, _ = s.pauses.get()
	return st
}

// fill adds what the life knows to st, and gives what it has received.
func (l *life) fill(st *Status) (received tally) {
	rec := l.keeper.recorded()
	st.Timeline = l.timeline
	st.Ring, received = l.buf.stats()
	st.Received = l.buf.lastReceived()
	st.AckRecorded, st.Last, st.RecordedAt = rec.Ack, rec.Last, rec.At
	st.Recording = l.keeper.underWay()
	st.InFlight, st.Ahead, st.HeldSince = l.flights.list()
	st.SlotSeen, st.Slot = l.guard.lastSeen()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		st.Connected, st.Reported = true, l.conn.session.Reported()
	}
	if l.trouble != "" {
		st.State = l.trouble
	}
	return received
}
