package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/activities"
	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/operator"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

func TestWrongSegmentsAreRefusedAllAtOnceBeforeAnythingIsAsked(t *testing.T) {
	// Nobody listens there: what is refused has not been asked for.
	environ := []string{"TIDEMARK_PIPELINE=shop", "TIDEMARK_LAKE_URL=file://" + t.TempDir(), "TEMPORAL_ADDRESS=127.0.0.1:1"}
	position := change.Position{Timeline: 1, LSN: 0x200}.String()
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"filters":             {[]string{"segments", "list", "--state", "done,odd", "--day", "2026-13-01", "--from", "x", "--limit", "-1"}, []string{`"odd"`, "running, retrying, waiting", "--day", "--from", "--limit"}},
		"an empty range":      {[]string{"segments", "list", "--from", "0/2", "--to", "0/1"}, []string{"--to 0/1 stands before --from 0/2"}},
		"no position":         {[]string{"segments", "show", "odd"}, []string{`"odd" is neither the first position`}},
		"another pipeline's":  {[]string{"segments", "show", "tidemark/other/" + position}, []string{"no workflow ID of pipeline shop"}},
		"nothing named":       {[]string{"segments", "retry"}, []string{"--all-waiting"}},
		"both":                {[]string{"segments", "quarantine", position, "--all-waiting"}, []string{"--all-waiting"}},
		"several":             {[]string{"segments", "quarantine", "odd", position, "even"}, []string{`"odd"`, `"even"`}},
		"a range of a replay": {[]string{"replay", "--from", "odd", "--to", "even"}, []string{"--from", "--to"}},
		"no lake":             {[]string{"replay"}, []string{"was not set up"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, environ, tc.args...)
			if got.status != statusRefused || got.out != "" {
				t.Errorf("%+v", got)
			}
			has(t, "stderr", got.err, tc.want...)
		})
	}
}

func TestATemporalThatDoesNotAnswerIsNamed(t *testing.T) {
	got := run(t, []string{"TIDEMARK_PIPELINE=shop", "TEMPORAL_ADDRESS=127.0.0.1:1"}, "segments", "list")
	if got.status != statusFailed || got.out != "" {
		t.Errorf("%+v", got)
	}
	has(t, "stderr", got.err, "pipeline shop", "127.0.0.1:1", "temporal.address")
}

func listedSegment() operator.Segment {
	return operator.Segment{
		State: operator.Retrying, WorkflowID: "tidemark/shop/x", RunID: "r1", Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Ref: segment.Ref{First: change.Position{Timeline: 1, LSN: 0x200}, Last: change.Position{Timeline: 1, LSN: 0x300}, Day: 20000, Rows: 7, Bytes: 2048, Digest: 9,
			Lake: "s3://b/p", Tables: []string{"public.a", "public.b", "public.c"}, TableCount: 40},
		Attempt: 3, LastError: "access denied,\n and more",
	}
}

func TestAListIsATableAndTheErrorsBelow(t *testing.T) {
	var out bytes.Buffer
	s := listedSegment()
	quarantined := s
	quarantined.State, quarantined.Replayed, quarantined.Attempt = operator.Quarantined, true, 0
	if err := writeSegments(&out, []operator.Segment{quarantined, s}, 5, s.Started.Add(90*time.Second)); err != nil {
		t.Fatal(err)
	}
	has(t, "list", out.String(), "5 before these", "FIRST", "STATE", "quarantined, replayed", "00000001-0000000000000200-0000000000  retrying", "2024-10-04  7     2.0 KiB  public.a, public.b and 38 more  1m30s ago  3",
		"\n00000001-0000000000000200-0000000000, retrying: access denied,; and more\n")
	out.Reset()
	if err := writeSegments(&out, nil, 0, time.Now()); err != nil || out.String() != "There is none.\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestASegmentIsShownWhole(t *testing.T) {
	s := listedSegment()
	now := s.Started.Add(90 * time.Second)
	s.Next = now.Add(4 * time.Second)
	d := operator.Details{
		Segment: s, Source: segment.Location{Instance: "db1-1-X", Address: "db1:7170"}, Attempts: 4,
		Pending: &operator.Pending{Activity: "Upload", Attempt: 3, Progress: &activities.Progress{Step: activities.StepStore}},
		Objects: []activities.Object{{Key: "2024/10/04/x", Rows: 7, Bytes: 100}}, Link: "http://ui/x",
	}
	var out bytes.Buffer
	writeDetails(&out, d, now)
	has(t, "show", out.String(), "state      retrying", "LSN 0/200", "LSN 0/300", "rows       7, 2.0 KiB, digest 0000000000000009, of 2024-10-04", "public.c and 37 more",
		"1m30s ago", "attempts   4", "Upload, attempt 3, begins in 4s; store", "error      access denied,; and more", "rows at    db1-1-X, db1:7170", "object     2024/10/04/x, 7 rows, 100 B", "tidemark/shop/x", "http://ui/x")
}

func TestAReplayTellsWhatItDoesAndWhatNobodyCanBring(t *testing.T) {
	ref := listedSegment().Ref
	at := func(lsn change.LSN) change.Position { return change.Position{Timeline: 1, LSN: lsn} }
	r := replayReport{
		Quarantined: []replayItem{{Ref: ref, State: operator.Quarantined}},
		Segments:    []replayItem{{Ref: ref, State: operator.Waiting}, {Ref: ref, State: operator.Broken}, {Ref: ref, State: operator.Retrying}},
		Missing:     []missingRange{{at(1), at(2)}}, Gaps: []lake.Gap{{Follows: at(3), Last: at(4), Reason: "the slot was dropped"}},
	}
	var out bytes.Buffer
	if err := r.writeText(&out); err != nil {
		t.Fatal(err)
	}
	has(t, "report", out.String(), "quarantined segment 00000001-0000000000000200-0000000000, 7 rows, is to be decoded again", "is to be sent the update retry", "is started again by the streamer",
		"goes on by itself", "missing     after 00000001-0000000000000001", "Only a slot that stands before", "gap         after", "the slot was dropped")
	out.Reset()
	if err := (replayReport{}).writeText(&out); err != nil || !strings.Contains(out.String(), "nothing to replay") {
		t.Errorf("%q, %v", out.String(), err)
	}
}
