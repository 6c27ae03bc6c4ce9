package main

import (
	"fmt"
	"io"
	"time"

	"github.com/tidemark-cdc/tidemark/streamer"
)

// maxShown is how many segments in flight, and tables that have changed, are
// shown one by one.
const maxShown = 10

// writeText prints the report for people.
func (r statusReport) writeText(w io.Writer) {
	line := func(what, format string, args ...any) {
		fmt.Fprintf(w, "%-10s %s\n", what, fmt.Sprintf(format, args...))
	}
	line("pipeline", "%s", r.Pipeline)
	if p := r.Paused; p != nil {
		line("PAUSED", "%s", *p)
		line("", "nothing is dispatched, and Postgres keeps its WAL, until tidemark resume")
	}
	if s := r.Slot; s != nil {
		reader := "nobody reads it"
		if s.Active {
			reader = fmt.Sprintf("read by process %d", s.ActivePID)
		}
		line("slot", "%s, %s, WAL %s", s.Name, reader, s.WALStatus)
		line("", "confirmed %s, %s behind", s.ConfirmedFlush, streamer.BytesText(s.LagBytes))
	}
	if r.WAL != nil {
		line("wal", "%s: %s", r.WAL.Level, r.WAL)
	}
	line("lake", "%s", r.Lake)
	if id := r.Identity; id != nil {
		line("", "begins at %s on timeline %d", id.StartLSN, id.Timeline)
		for _, s := range id.Successions {
			line("", "goes on with the system %s since %s", s.SystemID, s.At.UTC().Format(time.RFC3339))
		}
	} else {
		line("", "not set up: run tidemark setup")
	}
	if a := r.Ack; a != nil {
		line("", "ack %s, last position %s, recorded %s", a.Ack, a.Last, agoText(a.At))
	} else if r.Identity != nil {
		line("", "no ack yet")
	}
	for _, g := range r.Gaps {
		line("gap", "%s", g.Text())
	}
	for _, d := range r.Divergences {
		line("diverged", "%s", d.Text())
	}
	switch {
	case r.Process == nil:
		line("streamer", "%s", r.Unreachable)
	case r.Process.Streamer == nil:
		line("streamer", "the process at ops.listen is a %s, not a streamer", r.Process.Verb)
	default:
		writeStreamer(line, r.Process.Streamer)
		if a := r.Process.Holds; a != nil && a.Why != "" {
			line("ack", "%s: %s", a.What, a.Why)
		} else if a != nil {
			line("ack", "%s", a.What)
		}
		for _, reason := range r.Process.Reasons {
			line("not ready", "%s", reason)
		}
	}
	for _, p := range r.Problems {
		line("problem", "%s", p)
	}
	for _, p := range r.Notes {
		line("note", "%s", p)
	}
}

func writeStreamer(line func(what, format string, args ...any), s *streamer.Status) {
	line("streamer", "%s, timeline %d, %d adopted, %d reconnects", s.State, s.Timeline, s.Adopted, s.Reconnects)
	if !s.Received.IsZero() {
		line("", "received up to %s", s.Received)
	}
	for i, d := range s.Drift {
		if i == maxShown {
			line("", "and %d more", len(s.Drift)-maxShown)
			break
		}
		line("drift", "%s, seen %s", d, agoText(d.Since))
	}
	r := s.Ring
	line("ring", "dispatched %d changes (%s), waiting %d (%s), free %s",
		r.Dispatched.Changes, streamer.BytesText(r.Dispatched.Bytes), r.Waiting.Changes, streamer.BytesText(r.Waiting.Bytes), streamer.BytesText(r.Free.Bytes))
	line("in flight", "%d segments", len(s.InFlight))
	for i, f := range s.InFlight {
		if i == maxShown {
			line("", "and %d more", len(s.InFlight)-maxShown)
			break
		}
		held := ""
		if i == 0 {
			held = "; holds the ack"
		}
		line("", "%s, %d rows, %s, for %s%s", f.Ref.First, f.Ref.Rows, streamer.BytesText(f.Ref.Bytes), time.Since(f.Since).Round(time.Second), held)
	}
}
