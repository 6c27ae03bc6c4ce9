package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/operator"
	"github.com/tidemark-cdc/tidemark/internal/ops"
	"github.com/tidemark-cdc/tidemark/streamer"
)

// live is what the status page of a streamer shows.
func (p *process) live() *ops.Live {
	return &ops.Live{
		Snapshot: func() ops.Snapshot { return p.snapshot(time.Now()) },
		Sample:   func() ops.Sample { return p.observer.Sample(p.reading()) },
		History:  new(ops.History),
	}
}

func (p *process) snapshot(now time.Time) ops.Snapshot {
	p.attempts.look(now)
	st := p.streamer.Status()
	reasons := p.reasons()
	return ops.Snapshot{
		At: now.UTC(), Pipeline: p.cfg.Pipeline, Verb: p.roles.String(), Version: readBuild().Version,
		Ready: len(reasons) == 0, Reasons: append([]string{}, reasons...),
		Ack:      p.holds(st, now),
		Figures:  figures(st, now),
		Ring:     ringOf(st),
		Segments: p.segments(st, now),
		Findings: slices.Concat([]ops.Finding{}, sinceFindings(st), preflightFindings(p.findings, p.begun)),
	}
}

// holds says what holds the ack.
func (p *process) holds(st streamer.Status, now time.Time) ops.Ack {
	h := holding{st: st, maxAge: p.cfg.Segment.MaxAge, now: now}
	h.outage, h.outageErr = p.health.outage()
	if len(st.InFlight) > 0 {
		h.first, h.known, h.failed = p.attempts.of(st.InFlight[0].Ref.First)
	}
	return h.ack()
}

// figures are the numbers that say most.
func figures(st streamer.Status, now time.Time) []ops.Figure {
	connection := ops.Figure{Name: "Connection", Value: string(st.Phase)}
	if st.Reconnects > 0 {
		connection.Note = fmt.Sprintf("connected again %d times", st.Reconnects)
	}
	list := []ops.Figure{connection}
	if !st.RecordedAt.IsZero() {
		list = append(list, ops.Figure{Name: "Ack", Value: st.AckRecorded.String(), Note: "recorded at " + clockText(st.RecordedAt, now)})
	}
	if !st.Received.IsZero() {
		list = append(list, ops.Figure{Name: "Received up to", Value: st.Received.LSN.String(), Note: fmt.Sprintf("timeline %d", st.Timeline)})
	}
	if s := st.Slot; s != nil {
		list = append(list, ops.Figure{Name: "Lag", Value: streamer.BytesText(s.LagBytes), Note: "of WAL behind the ack"})
	}
	if w := st.WAL; w != nil {
		kept := ops.Figure{Name: "Kept by Postgres", Value: streamer.BytesText(w.RetainedBytes), Note: "of WAL for the slot"}
		if w.SafeBytes != nil {
			kept.Note += fmt.Sprintf(", %s more until it can be lost", streamer.BytesText(max(*w.SafeBytes, 0)))
		}
		list = append(list, kept)
	}
	if st.Adopted > 0 {
		list = append(list, ops.Figure{Name: "Adopted", Value: fmt.Sprint(st.Adopted), Note: "segments of earlier processes"})
	}
	return list
}

func ringOf(st streamer.Status) ops.Ring {
	r := st.Ring
	return ops.Ring{
		Done:       r.Read,
		Dispatched: ops.Range(r.Dispatched), Finished: ops.Range(r.Finished), Waiting: ops.Range(r.Waiting),
		Free: r.Free.Bytes, Full: r.Full,
	}
}

// segments are those that are dispatched, with what Temporal has said of them.
func (p *process) segments(st streamer.Status, now time.Time) ops.Segments {
	all := slices.Concat(st.InFlight, st.Ahead)
	slices.SortFunc(all, func(a, b streamer.Flight) int { return a.Ref.First.Compare(b.Ref.First) })
	shown := all[:min(len(all), ops.MaxSegments)]
	list := ops.Segments{Shown: make([]ops.Segment, len(shown)), MoreRunning: len(st.InFlight), MoreFinished: max(len(st.Ahead), st.Ring.FinishedSegments)}
	for i, f := range shown {
		s := segmentOf(f)
		s.Holds = len(st.InFlight) > 0 && f.Ref.First == st.InFlight[0].Ref.First
		s.Link = p.operator.Link(s.Workflow, "")
		if s.State == ops.Finished {
			list.MoreFinished--
		} else {
			list.MoreRunning--
			if known, ok, _ := p.attempts.of(f.Ref.First); ok {
				describe(&s, f, known, now)
			}
		}
		list.Shown[i] = s
	}
	return list
}

// segmentOf is what the streamer itself knows of a segment.
func segmentOf(f streamer.Flight) ops.Segment {
	s := ops.Segment{
		First: f.Ref.First.String(), FirstLSN: f.Ref.First.LSN.String(), LastLSN: f.Ref.Last.LSN.String(),
		Tables: tablesText(f.Ref.Tables, f.Ref.TableCount, 1),
		Rows:   f.Ref.Rows, Bytes: f.Ref.Bytes, Since: f.Since, Finished: f.Finished,
		State: ops.Running, Workflow: f.Ref.WorkflowID(),
	}
	if !f.Finished.IsZero() {
		s.State = ops.Finished
	}
	return s
}

// describe adds to s what Temporal has said.
func describe(s *ops.Segment, f streamer.Flight, known attempt, now time.Time) {
	t, pending := known.segment, known.pending
	s.Attempt = t.Attempt
	s.Error = withoutRows(withoutSegment(f.Ref, t.LastError))
	switch t.State {
	case operator.Retrying, operator.Waiting, operator.Broken:
		s.State = ops.State(t.State)
	}
	switch {
	case t.State == operator.Waiting:
		s.Doing = "tidemark segments retry, or quarantine"
	case t.State == operator.Broken:
		s.Doing = "it is started again"
	case !t.State.Open():
		s.Doing = "in the lake"
	case pending != nil && pending.Paused:
		s.Doing = "its activity is paused in Temporal"
	case pending == nil:
		s.Doing = "no worker has taken it yet"
	case !pending.Began.IsZero():
		s.Doing = fmt.Sprintf("attempt %d is under way since %s", pending.Attempt, clockText(pending.Began, now))
	case t.Next.After(now):
		s.Doing = fmt.Sprintf("attempt %d begins at %s", pending.Attempt, clockText(t.Next, now))
	default:
		s.Doing = fmt.Sprintf("attempt %d waits for a worker", pending.Attempt)
	}
}

// sinceFindings is what was found since the process began.
func sinceFindings(st streamer.Status) []ops.Finding {
	var list []ops.Finding
	for _, d := range st.Drift {
		f := ops.Finding{Level: ops.LevelWarning, Source: "drift", What: d.String(), Since: d.Since, Fix: "see \"tables that leave\" in the operations guide"}
		if d.Published {
			f.Level, f.Fix = ops.LevelNote, "its rows come as those of a new table"
		}
		list = append(list, f)
	}
	if w := st.WAL; w != nil && w.Level != streamer.WALFine {
		f := ops.Finding{Level: ops.LevelWarning, Source: "WAL", What: w.String(), Since: w.Since}
		if w.Level == streamer.WALAlarm {
			f.Level = ops.LevelError
		}
		list = append(list, f)
	}
	return list
}

// preflightFindings is what was found before the process began.
func preflightFindings(findings []finding, at time.Time) []ops.Finding {
	levels := map[level]ops.Level{levelError: ops.LevelError, levelWarning: ops.LevelWarning, levelPass: ops.LevelOK}
	var list []ops.Finding
	for _, f := range newCheckReport("", findings).Findings {
		list = append(list, ops.Finding{Level: levels[f.Level], Source: "preflight", About: f.About, What: f.What, Fix: f.Fix, Since: at})
	}
	return list
}
