package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/operator"
	"github.com/tidemark-cdc/tidemark/internal/ops"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer"
	"github.com/tidemark-cdc/tidemark/streamer/ring"
)

func TestASentenceSaysWhatHoldsTheAckWhyAndSinceWhen(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	ago := func(s int) time.Time { return now.Add(-time.Duration(s) * time.Second) }
	ref := segment.Ref{Pipeline: "shop", First: change.Position{Timeline: 1, LSN: 0x100}, Last: change.Position{Timeline: 1, LSN: 0x200}}
	name := ref.First.String()
	streaming := streamer.Status{Connected: true, Phase: streamer.Streaming}
	held := func(s int) streamer.Status {
		st := streaming
		st.InFlight, st.HeldSince = []streamer.Flight{{Ref: ref, Since: ago(s + 1)}, {Since: now}}, ago(s)
		return st
	}
	with := func(change func(*streamer.Status)) streamer.Status { st := streaming; change(&st); return st }
	said := func(s operator.State, n int32, err string, p *operator.Pending) attempt {
		return attempt{operator.Segment{State: s, Attempt: n, LastError: err}, p}
	}
	denied := "upload segment " + name + " of pipeline shop (LSN 0/100 to 0/200): put object x: 503 SlowDown: it is tried again"
	malformed := "upload segment " + name + ": malformed message (the message has 70 bytes, the first 64 in hex 490000abcdef)"

	for what, tc := range map[string]struct {
		h     holding
		level ops.Level
		want  []string
	}{
		"nothing":                        {holding{st: streaming}, ops.LevelOK, []string{"Nothing holds the ack"}},
		"a segment for a moment":         {holding{st: held(9)}, ops.LevelOK, []string{"Nothing holds the ack"}},
		"one that is uploaded":           {holding{st: held(9), known: true, first: said(operator.Running, 1, "", &operator.Pending{Began: ago(1)})}, ops.LevelOK, []string{"Nothing holds the ack"}},
		"a failed attempt at once":       {holding{st: held(3), known: true, first: said(operator.Retrying, 8, denied, nil)}, ops.LevelWarning, []string{"Segment " + name + " holds the ack since 11:59:57 UTC", "upload attempt 7 failed: put object x: 503 SlowDown"}},
		"one that waits for a person":    {holding{st: held(3), known: true, first: said(operator.Waiting, 0, malformed, nil)}, ops.LevelError, []string{"Segment " + name, "waits for a person", "malformed message (the message has 70 bytes)"}},
		"one since yesterday":            {holding{st: held(13 * 3600), known: true, first: said(operator.Retrying, 8, denied, nil)}, ops.LevelWarning, []string{"since 2026-01-01 23:00:00 UTC"}},
		"one that nobody takes":          {holding{st: held(10), known: true, first: said(operator.Running, 1, "", &operator.Pending{Attempt: 1})}, ops.LevelWarning, []string{"since 11:59:50 UTC", "no worker has taken it"}},
		"one that no workflow task took": {holding{st: held(10), known: true, first: said(operator.Running, 0, "", nil)}, ops.LevelWarning, []string{"no worker has taken it"}},
		"a long attempt":                 {holding{st: held(10), known: true, first: said(operator.Running, 1, "", &operator.Pending{Began: ago(9)})}, ops.LevelWarning, []string{"first upload attempt is under way since 11:59:51 UTC"}},
		"a paused activity":              {holding{st: held(10), known: true, first: said(operator.Running, 1, "", &operator.Pending{Paused: true})}, ops.LevelWarning, []string{"has paused its activity"}},
		"a closed workflow":              {holding{st: held(10), known: true, first: said(operator.Broken, 0, "", nil)}, ops.LevelWarning, []string{"is started again"}},
		"one that is there":              {holding{st: held(10), known: true, first: said(operator.Done, 0, "", nil)}, ops.LevelWarning, []string{"it is in the lake"}},
		"not asked yet":                  {holding{st: held(10)}, ops.LevelWarning, []string{"is being asked why"}},
		"no answer":                      {holding{st: held(10), failed: errors.New("no\nroute")}, ops.LevelWarning, []string{"Temporal does not say why: no; route"}},
		"Temporal is away":               {holding{st: held(10), outage: ago(8), outageErr: errors.New("refused")}, ops.LevelWarning, []string{"Segment", "Temporal cannot be reached since 11:59:52 UTC: refused"}},
		"the record, for a moment":       {holding{st: with(func(st *streamer.Status) { st.Recording = &streamer.Recording{Since: ago(9)} })}, ops.LevelOK, []string{"Nothing"}},
		"the record, refused":            {holding{st: with(func(st *streamer.Status) { st.Recording = &streamer.Recording{Since: ago(2), Error: "denied"} })}, ops.LevelWarning, []string{"record of the ack since 11:59:58 UTC", "denied"}},
		"the record, unanswered":         {holding{st: with(func(st *streamer.Status) { st.Recording = &streamer.Recording{Since: ago(10)} })}, ops.LevelWarning, []string{"does not answer"}},
		"a pause":                        {holding{st: with(func(st *streamer.Status) { st.Paused = &lake.Pause{By: "ann", Since: ago(5), Reason: "a move"} })}, ops.LevelWarning, []string{"The pipeline is paused by ann since", "a move", "tidemark resume"}},
		"a standby":                      {holding{st: streamer.Status{Phase: streamer.Standby}}, ops.LevelNote, []string{"Another process streams"}},
		"no connection":                  {holding{st: streamer.Status{Phase: streamer.Connecting, State: "trying again: refused"}}, ops.LevelWarning, []string{"no connection to Postgres", "trying again: refused"}},
		"changes that wait":              {holding{st: with(func(st *streamer.Status) { st.Ring = ring.Stats{OldestWaiting: change.TimeOf(ago(20))} })}, ops.LevelWarning, []string{"since 11:59:40 UTC are not being dispatched", "the log says"}},
		"they may wait":                  {holding{st: with(func(st *streamer.Status) { st.Ring = ring.Stats{OldestWaiting: change.TimeOf(ago(19))} })}, ops.LevelOK, []string{"Nothing"}},
		"they wait for Temporal":         {holding{st: with(func(st *streamer.Status) { st.Ring = ring.Stats{OldestWaiting: change.TimeOf(ago(20))} }), outage: ago(8), outageErr: errors.New("refused")}, ops.LevelWarning, []string{"not being dispatched", "Temporal cannot be reached"}},
		"they are of a transaction": {holding{st: with(func(st *streamer.Status) {
			st.Ring = ring.Stats{OldestWaiting: change.TimeOf(ago(20)), OpenTransaction: true}
		})}, ops.LevelNote, []string{"A transaction is being received since 11:59:40 UTC"}},
	} {
		t.Run(what, func(t *testing.T) {
			h := tc.h
			h.now, h.maxAge = now, 10*time.Second
			got := h.ack()
			if got.Level != tc.level {
				t.Errorf("level %s, want %s", got.Level, tc.level)
			}
			has(t, "the sentence", got.What+": "+got.Why, tc.want...)
			if strings.Contains(got.Why, "490000abcdef") {
				t.Errorf("it shows what is in the message: %s", got.Why)
			}
		})
	}
}

func TestAnErrorIsShownWithoutTheNamesThatStandBesideIt(t *testing.T) {
	ref := segment.Ref{Pipeline: "shop", Lake: "s3://lake/shop", First: change.Position{Timeline: 1, LSN: 0x100}, Last: change.Position{Timeline: 1, LSN: 0x200}}
	first := ref.First.String()
	where := "upload segment " + first + " of pipeline shop (LSN 0/100 to 0/200): "
	for text, want := range map[string]string{
		"": "",
		where + "look for the object: find segment " + first + ": look for s3://lake/shop/2026/01/02/" + first + "_00000001-X.zstd.parquet: ServiceUnavailable (HTTP status 503): it is tried again": "look for the object: look for it: ServiceUnavailable (HTTP status 503): it is tried again",
		where + "store the object: put segment " + first + ": write s3://lake/shop/" + first + ".zstd.parquet failed":                                                                                "store the object: write it failed",
		"segment " + first + ": odd":                       "segment " + first + ": odd",
		"another " + ref.Last.String() + "\nsays s3://x/y": "another " + ref.Last.String() + "; says s3://x/y",
	} {
		if got := withoutSegment(ref, text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

func TestTheSentenceStaysAsItIsWhileNothingHappens(t *testing.T) {
	begin := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	h := holding{
		st:  streamer.Status{Connected: true, InFlight: []streamer.Flight{{Since: begin}}, HeldSince: begin},
		now: begin.Add(time.Minute), known: true,
		first: attempt{operator.Segment{State: operator.Retrying, Attempt: 8, LastError: "no", Next: begin.Add(90 * time.Second)}, &operator.Pending{Attempt: 8}},
	}
	before := h.ack()
	h.now = begin.Add(2 * time.Minute)
	h.first.pending.Began = begin.Add(95 * time.Second)
	if after := h.ack(); after != before {
		t.Errorf("it was %q and is %q", before, after)
	}
}
