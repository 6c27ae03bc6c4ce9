package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/operator"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/workflows"
)

// What an operator does, over the binary, one after the other on one pipeline:
// two segments wait, one goes to quarantine and is replayed once a decoder
// understands it, the other is retried; then the pipeline is paused.
func TestAnOperatorFindsRetriesQuarantinesReplaysAndPauses(t *testing.T) {
	h, s, refusing := refusingWorker(t)
	c := dialTemporal(t, h)
	rows := events{h: h}
	rows.goOn(t)
	first := rows.refuse(t, s, c, 1)
	rows.goOn(t)
	second := rows.refuse(t, s, c, 2)

	t.Run("list", func(t *testing.T) { listed(t, h, first, second) })
	verbSays(t, h, "segments show", []string{first.First.String()}, "waiting for a person", first.Last.String(), "malformed pgoutput message", "rows at", first.WorkflowID())
	refusedVerb(t, h, "segments retry", []string{"nonsense", "0/1"}, `"nonsense" is neither`, `"0/1" is`)
	refusedVerb(t, h, "segments retry", nil, "--all-waiting")
	refusedVerb(t, h, "segments quarantine", []string{first.First.String()}, "--yes")
	nowhere := first.First
	nowhere.Ordinal++
	refusedVerb(t, h, "segments quarantine", []string{nowhere.String(), "--yes"}, "Temporal knows no segment")

	verbSays(t, h, "segments quarantine", []string{first.WorkflowID(), "--yes"}, first.First.String()+" is in quarantine")
	inQuarantine(t, h)
	refusedVerb(t, h, "segments quarantine", []string{first.First.String(), "--yes"}, "is quarantined")

	// No decoder understands it yet; the other one waits again.
	verbSays(t, h, "replay", []string{"--dry-run"}, first.First.String()+", 1 rows, is to be decoded again", second.First.String()+", 1 rows, is to be sent the update retry")
	r := h.Verb("replay", "--to", first.Last.String())
	if r.Code != 1 || !strings.Contains(r.Stdout, "stay in quarantine") || strings.Contains(r.Stdout, second.First.String()) {
		t.Fatalf("replay without a decoder ended with status %d:\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	inQuarantine(t, h)

	refusing.Stop()
	h.Worker()
	verbSays(t, h, "segments retry", []string{"--all-waiting"}, second.First.String()+" is tried again")
	rows.inLake++
	h.WaitAck()
	verbSays(t, h, "replay", []string{"--from", first.First.LSN.String(), "--to", first.Last.LSN.String()}, "is in the lake: "+lake.Key(first))
	rows.inLake++
	if got := h.RowsInLake().Total(); got != rows.inLake {
		t.Errorf("the lake has %d rows, want all %d", got, rows.inLake)
	}
	h.Sound()
	verify := verbSays(t, h, "verify", nil, "Well:")
	if strings.Contains(verify, "in quarantine") {
		t.Errorf("verify says:\n%s", verify)
	}
	verbSays(t, h, "replay", nil, "There is nothing to replay.")
	verbSays(t, h, "segments show", []string{first.First.String()}, "quarantined; its rows are in the lake by now")
	if described, err := c.DescribeWorkflow(t.Context(), workflows.ReplayID(first), ""); err != nil {
		t.Errorf("Temporal does not show the replay: %v", err)
	} else if state, _ := described.TypedSearchAttributes.GetKeyword(workflows.StateAttribute); state != string(workflows.Done) {
		t.Errorf("the replay is %q in Temporal", state)
	}

	t.Run("pause", func(t *testing.T) { paused(t, h, s, &rows) })
}

// listed tries the filters of segments list.
func listed(t *testing.T, h *harness.Harness, first, second segment.Ref) {
	day := first.Day.String()
	for _, tc := range []struct {
		args []string
		want []segment.Ref
	}{
		{[]string{"--state", "waiting"}, []segment.Ref{first, second}},
		{[]string{"--state", "retrying", "--state", "waiting,quarantined", "--limit", "1"}, []segment.Ref{second}},
		{[]string{"--state", "waiting", "--day", day, "--table", "public.events"}, []segment.Ref{first, second}},
		{[]string{"--state", "waiting", "--day", "2020-01-01"}, nil},
		{[]string{"--state", "waiting", "--table", "public.nothing"}, nil},
		{[]string{"--from", first.First.String(), "--to", first.Last.LSN.String()}, []segment.Ref{first}},
		{[]string{"--state", "waiting", "--from", second.First.LSN.String()}, []segment.Ref{second}},
	} {
		// Visibility lags behind.
		h.Eventually(harness.Bound, func() string {
			var list struct{ Segments []operator.Segment }
			r := h.Verb("segments list", append(tc.args, "--json")...)
			if err := json.Unmarshal([]byte(r.Stdout), &list); err != nil {
				t.Fatalf("%q: %v\n%s%s", tc.args, err, r.Stdout, r.Stderr)
			}
			same := slices.EqualFunc(list.Segments, tc.want, func(s operator.Segment, ref segment.Ref) bool {
				return s.Ref.First == ref.First && s.Ref.Digest == ref.Digest && s.State == operator.Waiting
			})
			if !same {
				return fmt.Sprintf("%q lists %+v, want %+v", tc.args, list.Segments, tc.want)
			}
			return ""
		})
	}
	verbSays(t, h, "segments list", nil, "FIRST", "done", first.First.String(), "waiting", "public.events", second.First.String(), "malformed pgoutput message")
	refusedVerb(t, h, "segments list", []string{"--state", "odd", "--day", "x", "--from", "1/2", "--to", "1/1"}, `"odd"`, "--day", "--to 1/1 stands before")
}

// paused pauses the pipeline across a restart of its streamer.
func paused(t *testing.T, h *harness.Harness, s *harness.Proc, rows *events) {
	verbSays(t, h, "pause", []string{"--by", "ann", "--reason", "the bucket moves"}, "paused by ann")
	s.WaitLog("the pipeline is paused", harness.Bound)
	before := len(h.Objects())
	rows.insert("within the pause")
	s.Stop()
	s = h.Streamer()
	s.WaitStatus(func(st harness.Status) string {
		if st.Ring.Waiting.Changes == 0 {
			return "no row waits in the ring"
		}
		return ""
	})
	verbSays(t, h, "pause", nil, "paused already: paused by ann")
	verbSays(t, h, "status", []string{"--ops-listen", s.Ops}, "PAUSED", "paused by ann since", "because: the bucket moves", "not ready", "tidemark resume")
	ready := h.Verb("health", "--ready", "--ops-listen", s.Ops)
	if ready.Code != 1 || !strings.Contains(ready.Stdout, "paused by ann") {
		t.Errorf("health --ready ended with status %d: %s%s", ready.Code, ready.Stdout, ready.Stderr)
	}
	if now := len(h.Objects()); now != before {
		t.Errorf("%d objects were stored within the pause", now-before)
	}
	verbSays(t, h, "verify", nil, "Well:")
	verbSays(t, h, "resume", nil, "goes on")
	rows.inLake++
	h.Eventually(harness.Bound, func() string {
		if got := h.RowsInLake().Total(); got != rows.inLake {
			return fmt.Sprintf("the lake has %d of %d rows", got, rows.inLake)
		}
		return ""
	})
	verbSays(t, h, "resume", nil, "nothing to do")
	h.Sound()
	s.Stop()
}

// verbSays runs a verb that has to end with status 0 and to say each text, in order.
func verbSays(t *testing.T, h *harness.Harness, verb string, args []string, texts ...string) string {
	t.Helper()
	r := h.Verb(verb, args...)
	if r.Code != 0 {
		t.Fatalf("tidemark %s %q ended with status %d:\n%s%s", verb, args, r.Code, r.Stdout, r.Stderr)
	}
	rest := r.Stdout
	for _, text := range texts {
		_, after, found := strings.Cut(rest, text)
		if !found {
			t.Errorf("tidemark %s %q has no %q, or out of order:\n%s", verb, args, text, r.Stdout)
			break
		}
		rest = after
	}
	return r.Stdout
}

// refusedVerb runs a verb that has to be refused with each text.
func refusedVerb(t *testing.T, h *harness.Harness, verb string, args []string, texts ...string) {
	t.Helper()
	r := h.Verb(verb, args...)
	if r.Code != 2 {
		t.Errorf("tidemark %s %q ended with status %d:\n%s%s", verb, args, r.Code, r.Stdout, r.Stderr)
	}
	for _, text := range texts {
		if !strings.Contains(r.Stderr, text) {
			t.Errorf("tidemark %s %q does not say %q: %s", verb, args, text, r.Stderr)
		}
	}
}
