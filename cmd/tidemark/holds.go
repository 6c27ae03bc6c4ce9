package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/operator"
	"github.com/tidemark-cdc/tidemark/internal/ops"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer"
)

// heldAfter is for how long one segment may be what the ack waits for, or a
// record of the ack be written, before that is worth a word. A failed attempt is
// at once.
const heldAfter = 10 * time.Second

// holding is what the sentence about the ack is made of.
type holding struct {
	st     streamer.Status
	maxAge time.Duration // segment.max_age
	// outage is since when Temporal has not been reached, zero while it is, and
	// why.
	outage    time.Time
	outageErr error
	// first is what is known of the first segment in flight, if known says so;
	// failed is why no more is.
	first  attempt
	known  bool
	failed error
	now    time.Time
}

// ack says what holds the ack, why and since when, or that nothing does. It
// changes only when something does: it is read out.
func (h holding) ack() ops.Ack {
	st := h.st
	at := func(t time.Time) string { return clockText(t, h.now) }
	level, why := h.why()
	switch {
	case len(st.InFlight) > 0 && level != ops.LevelOK:
		return ops.Ack{Level: level, Why: why, What: fmt.Sprintf("Segment %s holds the ack since %s", st.InFlight[0].Ref.First, at(st.HeldSince))}
	case st.Recording != nil && (st.Recording.Error != "" || h.now.Sub(st.Recording.Since) >= heldAfter):
		why := "it does not answer"
		if st.Recording.Error != "" {
			why = oneLine(st.Recording.Error)
		}
		return ops.Ack{Level: ops.LevelWarning, Why: why, What: "The lake has not taken the record of the ack since " + at(st.Recording.Since)}
	case st.Paused != nil:
		return ops.Ack{Level: ops.LevelWarning, Why: "tidemark resume lets it go on", What: fmt.Sprintf("The pipeline is %s", *st.Paused)}
	case st.Phase == streamer.Standby:
		return ops.Ack{Level: ops.LevelNote, Why: "its own page says what holds the ack", What: "Another process streams from the slot, and this one stands by"}
	case !st.Connected:
		return ops.Ack{Level: ops.LevelWarning, Why: oneLine(st.State), What: "There is no connection to Postgres"}
	}
	if first := st.Ring.OldestWaiting; len(st.InFlight) == 0 && first != 0 && h.now.Sub(first.UTC()) >= h.maxAge+heldAfter {
		a := ops.Ack{Level: ops.LevelWarning, Why: "the log says what is waited for", What: "The changes received since " + at(first.UTC()) + " are not being dispatched"}
		switch {
		case !h.outage.IsZero():
			a.Why = h.outageText()
		case st.Ring.OpenTransaction:
			a.Level, a.Why, a.What = ops.LevelNote, "the ack moves at its end", "A transaction is being received since "+at(first.UTC())
		}
		return a
	}
	return ops.Ack{Level: ops.LevelOK, What: "Nothing holds the ack"}
}

// why says why the first segment in flight is not in the lake yet; LevelOK if
// that is no wonder, or there is none.
func (h holding) why() (ops.Level, string) {
	if len(h.st.InFlight) == 0 {
		return ops.LevelOK, ""
	}
	long := h.now.Sub(h.st.HeldSince) >= heldAfter
	s, p := h.first.segment, h.first.pending
	failed := withoutRows(withoutSegment(h.st.InFlight[0].Ref, s.LastError))
	switch {
	case h.known && s.State == operator.Waiting:
		return ops.LevelError, "it waits for a person (tidemark segments retry, or quarantine): " + failed
	case !h.outage.IsZero() && long:
		return ops.LevelWarning, h.outageText()
	case h.known && s.State == operator.Retrying:
		return ops.LevelWarning, fmt.Sprintf("upload attempt %d failed: %s", s.Attempt-1, failed)
	case !long:
		return ops.LevelOK, ""
	case h.known && s.State == operator.Broken:
		return ops.LevelWarning, "its workflow was closed before it was in the lake, and is started again"
	case h.known && !s.State.Open():
		return ops.LevelWarning, "it is in the lake, which the streamer is about to hear"
	case h.known && p != nil && p.Paused:
		return ops.LevelWarning, "somebody has paused its activity in Temporal"
	case h.known && (p == nil || p.Began.IsZero()):
		return ops.LevelWarning, "no worker has taken it: is one running?"
	case h.known:
		return ops.LevelWarning, "its first upload attempt is under way since " + clockText(p.Began, h.now)
	case h.failed != nil:
		return ops.LevelWarning, "Temporal does not say why: " + oneLine(h.failed.Error())
	}
	return ops.LevelWarning, "Temporal is being asked why"
}

func (h holding) outageText() string {
	return fmt.Sprintf("Temporal cannot be reached since %s: %s", clockText(h.outage, h.now), oneLine(h.outageErr.Error()))
}

// withoutSegment is the error of an attempt without the names of the segment and
// of its object, where those are clear anyway: they are long, and stand before
// what matters.
func withoutSegment(ref segment.Ref, text string) string {
	if _, rest, found := strings.Cut(text, fmt.Sprintf("(LSN %s to %s): ", ref.First.LSN, ref.Last.LSN)); found {
		text = rest
	}
	words := strings.Fields(oneLine(text))
	for i := 0; i < len(words); i++ {
		before, after, found := strings.Cut(words[i], ref.First.String())
		switch {
		case !found:
		case before == "" && after == ":" && i >= 2 && words[i-1] == "segment":
			// "find segment …:"
			words = slices.Delete(words, i-2, i+1)
			i -= 3
		case strings.HasPrefix(words[i], ref.Lake+"/"):
			words[i] = "it"
			if strings.HasSuffix(after, ":") {
				words[i] += ":"
			}
		}
	}
	return strings.Join(words, " ")
}

// excerpt is what pgoutput.Excerpt shows of a message.
var excerpt = regexp.MustCompile(`,( the first [0-9]+)? in hex [0-9a-f]+`)

// withoutRows takes out what an error about a message shows of it: the page has
// no row data, and who may see the workflow finds it there.
func withoutRows(text string) string {
	return excerpt.ReplaceAllString(text, "")
}

// clockText is a time of day in UTC, with the date if that is not today's.
func clockText(t, now time.Time) string {
	t, now = t.UTC(), now.UTC()
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format("15:04:05 UTC")
	}
	return t.Format("2006-01-02 15:04:05 UTC")
}
