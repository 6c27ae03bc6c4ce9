package replication

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

func TestFeedbackReportsNoMoreThanCameOnThisConnection(t *testing.T) {
	for name, c := range map[string]struct {
		start, received, ack change.LSN
		want                 Status
	}{
		"nothing came: the slot's own position":        {start: 100, want: Status{100, 100}},
		"an ack from before does not count by itself":  {start: 100, ack: 900, want: Status{100, 100}},
		"an ack beyond what came is cut":               {start: 100, received: 300, ack: 900, want: Status{300, 300}},
		"an ack within what came is reported":          {start: 100, received: 300, ack: 200, want: Status{300, 200}},
		"an old ack does not move the slot back":       {start: 100, received: 300, ack: 50, want: Status{300, 100}},
		"an old keepalive does not move the slot back": {start: 100, received: 60, ack: 90, want: Status{100, 100}},
	} {
		f := NewFeedback(c.start, 0, time.Time{})
		f.Ack(c.ack)
		f.Received(c.received)
		if got := f.Status(); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

func TestFeedbackIsDue(t *testing.T) {
	ms := time.Millisecond
	for name, c := range map[string]struct {
		timeout time.Duration
		do      func(*Feedback)
		want    time.Duration
	}{
		"every 10 s":                                   {want: 10 * time.Second},
		"every 10 s with the default timeout":          {timeout: time.Minute, want: 10 * time.Second},
		"within a third of a short timeout":            {timeout: 2 * time.Second, want: 500 * ms},
		"soon when the ack grows":                      {do: func(f *Feedback) { f.Received(300); f.Ack(200) }, want: 50 * ms},
		"not for an ack that may not be reported":      {do: func(f *Feedback) { f.Ack(200) }, want: 10 * time.Second},
		"not for what was only received":               {do: func(f *Feedback) { f.Received(300) }, want: 10 * time.Second},
		"soon when the server asks":                    {do: func(f *Feedback) { f.Asked() }, want: 100 * ms},
		"sooner when it asks and there is something":   {do: func(f *Feedback) { f.Asked(); f.Received(300); f.Ack(200) }, want: 50 * ms},
		"a very short timeout is not made longer":      {timeout: 40 * ms, do: func(f *Feedback) { f.Asked() }, want: 10 * ms},
		"an answer was given: the next one is far":     {do: func(f *Feedback) { f.Asked(); f.Take(time.Time{}) }, want: 10 * time.Second},
		"a growth was reported: the next one is far":   {do: func(f *Feedback) { f.Received(3); f.Ack(2); f.Take(time.Time{}) }, want: 10 * time.Second},
		"what came late is due when it may be told":    {do: func(f *Feedback) { f.Ack(200); f.Received(150) }, want: 50 * ms},
		"an ack that was told already is not due":      {do: func(f *Feedback) { f.Received(9); f.Ack(9); f.Take(time.Time{}); f.Ack(9) }, want: 10 * time.Second},
		"an ack that grew beyond what came is not due": {do: func(f *Feedback) { f.Received(9); f.Ack(9); f.Take(time.Time{}); f.Ack(99) }, want: 10 * time.Second},
	} {
		f := NewFeedback(1, c.timeout, time.Time{})
		if c.do != nil {
			c.do(f)
		}
		if got := f.Due().Sub(time.Time{}); got != c.want {
			t.Errorf("%s: due after %v, want %v", name, got, c.want)
		}
	}
}

// TestFeedbackHoldsItsInvariants runs any sequence of events against what a
// server would have seen of it.
func TestFeedbackHoldsItsInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := change.LSN(rapid.IntRange(0, 50).Draw(t, "start"))
		timeout := time.Duration(rapid.IntRange(0, 120).Draw(t, "timeout")) * time.Second
		now := time.Unix(0, 0)
		f := NewFeedback(start, timeout, now)
		var received, ack change.LSN
		reported, at := Status{start, start}, now
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			lsn := change.LSN(rapid.IntRange(0, 100).Draw(t, "lsn"))
			switch rapid.IntRange(0, 4).Draw(t, "event") {
			case 0:
				f.Received(lsn)
				received = max(received, lsn)
			case 1:
				f.Ack(lsn)
				ack = max(ack, lsn)
			case 2:
				f.Asked()
			case 3:
				now = now.Add(time.Duration(rapid.IntRange(0, 200).Draw(t, "ms")) * time.Millisecond)
			case 4:
				now = maxTime(now, f.Due())
				got := f.Take(now)
				if got.Flushed > max(start, received) || got.Written > max(start, received) {
					t.Fatalf("reported %+v, but only %d came after %d", got, received, start)
				}
				if got.Flushed > max(start, ack) {
					t.Fatalf("reported %+v, but the ack is %d", got, ack)
				}
				if got.Flushed < reported.Flushed || got.Written < reported.Written || got.Flushed > got.Written {
					t.Fatalf("reported %+v after %+v", got, reported)
				}
				reported, at = got, now
			}
			if wait := f.Due().Sub(at); wait > 10*time.Second || timeout > 0 && wait > timeout/3 {
				t.Fatalf("the next report waits %v", wait)
			}
			if wait := f.Due().Sub(at); wait < 50*time.Millisecond {
				t.Fatalf("the next report waits only %v", wait)
			}
		}
	})
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func TestShutdownIsSuspectedWhenNothingMovesAndTheServerKeepsAsking(t *testing.T) {
	type ask struct {
		at           time.Duration
		end, flushed change.LSN
	}
	s := time.Second
	for name, c := range map[string]struct {
		asks []ask
		want int // the ask that makes it suspicious; 0 for none
	}{
		"everything is confirmed":   {[]ask{{0, 9, 9}, {s, 9, 9}, {2 * s, 9, 9}, {4 * s, 9, 9}}, 0},
		"the WAL end moves":         {[]ask{{0, 9, 1}, {s, 10, 1}, {2 * s, 11, 1}, {4 * s, 12, 1}}, 0},
		"the ack moves":             {[]ask{{0, 9, 1}, {s, 9, 2}, {2 * s, 9, 3}, {4 * s, 9, 4}}, 0},
		"nothing moves, briefly":    {[]ask{{0, 9, 1}, {s / 10, 9, 1}, {s / 5, 9, 1}, {2 * s, 9, 1}}, 0},
		"nothing moves for a while": {[]ask{{0, 9, 1}, {s, 9, 1}, {2 * s, 9, 1}, {3 * s, 9, 1}, {4 * s, 9, 1}}, 4},
		"two asks are not enough":   {[]ask{{0, 9, 1}, {4 * s, 9, 1}}, 0},
		"it moved, then stands":     {[]ask{{0, 9, 1}, {s, 9, 2}, {2 * s, 9, 2}, {3 * s, 9, 2}, {4 * s, 9, 2}}, 5},
		"a second probe takes time": {[]ask{{0, 9, 1}, {s, 9, 1}, {3 * s, 9, 1}, {4 * s, 9, 1}, {12 * s, 9, 1}}, 3},
	} {
		w := shutdownWatch{grace: 3 * s}
		epoch, probes, first := time.Unix(0, 0), 0, 0
		for i, a := range c.asks {
			if w.asked(epoch.Add(a.at), a.end, a.flushed) {
				probes++
				if first == 0 {
					first = i + 1
				}
			}
		}
		if first != c.want || probes > 1 {
			t.Errorf("%s: probed %d times, first at ask %d, want %d", name, probes, first, c.want)
		}
	}
}
