package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/load"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/tally"
	"github.com/tidemark-cdc/tidemark/internal/change"
)

// A pipeline from its setup to its end, by the verbs alone.
func TestSetupStatusAndTeardown(t *testing.T) {
	quick := pipeline.Settings{"segment.max_age": "200ms"}
	onEach(t, harness.Options{NoSetup: true, Settings: quick, TemporalMemory: true}, func(t *testing.T, h *harness.Harness) {
		made := func() (slots, publications int) {
			t.Helper()
			return harness.Scalar[int](h, "select count(*)::int from pg_replication_slots"), harness.Scalar[int](h, "select count(*)::int from pg_publication")
		}
		if err := load.Create(t.Context(), h.Stack.Postgres.URL()); err != nil {
			t.Fatal(err)
		}
		verb(t, h, 0, "was not set up", "check")
		verb(t, h, 0, "would be made", "setup", "--dry-run")
		h.SQL(`create table public.bare (n int)`)
		verb(t, h, 2, "ALTER TABLE public.bare REPLICA IDENTITY FULL;", "setup")
		if s, p := made(); s != 0 || p != 0 {
			t.Errorf("a refused setup has left %d slots and %d publications", s, p)
		}
		h.SQL(`drop table public.bare`)
		if s, p := made(); s != 0 || p != 0 {
			t.Errorf("a dry run has made %d slots and %d publications", s, p)
		}
		told := outcomes(t, verb(t, h, 0, "{", "setup", "--json"))
		verb(t, h, 0, "0 errors", "check")
		stood := h.Ack()
		if told["publication"].Outcome != "made" || told["slot"].Outcome != "made" || told["slot"].LSN != stood || told["lake"].Outcome != "made" {
			t.Errorf("setup tells %+v, and the slot stands at %s", told, stood)
		}
		if out := verb(t, h, 0, "exists", "setup"); strings.Contains(out, "made") || strings.Contains(out, "founded") {
			t.Errorf("the second setup has made something:\n%s", out)
		}
		if s, p := made(); s != 1 || p != 1 || h.Ack() != stood {
			t.Errorf("after two setups there are %d slots and %d publications, and the slot stands at %s instead of %s", s, p, h.Ack(), stood)
		}

		st := status(t, h)
		if st.Slot == nil || st.Slot.ConfirmedFlush.String() != stood || st.Slot.Active || st.Process != nil || st.Unreachable == "" {
			t.Errorf("before the first start the status is %+v", st)
		}
		p := h.Run()
		p.WaitStreaming()
		h.SQL(`insert into public.events values (1, 'a', 'b'), (2, 'a', 'b')`)
		h.WaitAck()
		verb(t, h, 0, "a second streamer stands by", "check")
		// A quiet pipeline's ack moves too, and it may do so between one look and
		// the next.
		h.Eventually(harness.Bound, func() string {
			st = status(t, h, "--ops-listen="+p.Ops)
			if st.Ack != nil && st.Process != nil && st.Process.Streamer != nil && st.Ack.Ack != st.Process.Streamer.AckRecord {
				return fmt.Sprintf("the process says %s is on record, the lake has %s", st.Process.Streamer.AckRecord, st.Ack.Ack)
			}
			return ""
		})
		switch {
		case st.Slot == nil || !st.Slot.Active || st.Ack == nil || st.Process == nil || st.Process.Streamer == nil:
			t.Errorf("while it runs the status is %+v", st)
		case !st.Process.Streamer.Connected || st.Process.Streamer.Ring.Write != 2:
			t.Errorf("while it runs the status of the process is %+v", st.Process.Streamer)
		}
		verb(t, h, 2, "stop the streamer first", "teardown", "--yes")
		p.Stop()

		verb(t, h, 2, "--yes", "teardown") // nobody is there to answer
		if s, p := made(); s != 1 || p != 1 {
			t.Errorf("a refused teardown has left %d slots and %d publications", s, p)
		}
		verb(t, h, 2, "give --yes", "teardown", "--json")
		if gone := outcomes(t, verb(t, h, 0, "{", "teardown", "--yes", "--json")); gone["slot"].Outcome != "dropped" || gone["publication"].Outcome != "dropped" {
			t.Errorf("teardown tells %+v", gone)
		}
		if s, p := made(); s != 0 || p != 0 {
			t.Errorf("teardown has left %d slots and %d publications", s, p)
		}
		verb(t, h, 0, "nothing to do", "teardown", "--yes")
		verb(t, h, 2, "is gone", "setup") // it would hide a gap
		verb(t, h, 2, "is gone", "run")
		h.LakeHas(tally.Counts{{Table: "public.events", Operation: "insert"}: 2})

		// The lake goes on with a recorded gap.
		h.SQL(`insert into public.events values (3, 'a', 'b')`)
		verb(t, h, 2, "--recreate-slot", "resolve", "--yes")
		verb(t, h, 2, "--yes", "setup", "--recreate-slot")
		verb(t, h, 0, "to do        make the replication slot", "setup", "--recreate-slot", "--dry-run")
		if s, p := made(); s != 0 || p != 0 {
			t.Errorf("a dry run has made %d slots and %d publications", s, p)
		}
		verb(t, h, 0, "The streamer can be started again", "setup", "--recreate-slot", "--yes")
		verb(t, h, 2, "no reason to make it anew", "setup", "--recreate-slot", "--yes")
		verb(t, h, 0, "nothing to resolve", "resolve")
		p = h.Run()
		h.SQL(`insert into public.events values (4, 'a', 'b')`)
		h.WaitAck()
		p.Stop()
		verb(t, h, 0, "was gone, and a new one was made", "status")
		if gaps := status(t, h).Gaps; len(gaps) != 1 || gaps[0].Reason == "" {
			t.Errorf("the status has the gaps %+v", gaps)
		}
		verb(t, h, 0, "except for 1 recorded gap", "verify")
		h.LakeHas(tally.Counts{{Table: "public.events", Operation: "insert"}: 3})
	})
}

// step is one of those that setup and teardown tell with --json.
type step struct {
	What    string `json:"what"`
	Outcome string `json:"outcome"`
	LSN     string `json:"lsn"`
}

// outcomes are the steps that a verb has told, by what they are about.
func outcomes(t *testing.T, out string) map[string]step {
	t.Helper()
	told := map[string]step{}
	for line := range strings.Lines(out) {
		var s step
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatalf("%v: a verb with --json says %q", err, line)
		}
		told[s.What] = s
	}
	return told
}

// statusReport is what tidemark status --json prints.
type statusReport struct {
	Slot *struct {
		Active         bool       `json:"active"`
		ConfirmedFlush change.LSN `json:"confirmed_flush_lsn"`
	} `json:"slot"`
	Ack *struct {
		Ack change.LSN `json:"ack"`
	} `json:"ack"`
	Gaps []struct {
		Reason string `json:"reason"`
	} `json:"gaps"`
	Process *struct {
		Streamer *harness.Status `json:"streamer"`
	} `json:"process"`
	Unreachable string `json:"unreachable"`
}

func status(t *testing.T, h *harness.Harness, args ...string) (st statusReport) {
	t.Helper()
	out := verb(t, h, 0, "{", "status", append([]string{"--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &st); err != nil {
		t.Fatalf("read tidemark status: %v\n%s", err, out)
	}
	return st
}

// verb runs a verb that has to end with a status and to say something, and
// returns what it says.
func verb(t *testing.T, h *harness.Harness, code int, says, name string, args ...string) string {
	t.Helper()
	r := h.Verb(name, args...)
	if r.Code != code || !strings.Contains(r.Stdout+r.Stderr, says) {
		t.Fatalf("tidemark %s %v ended with status %d, want %d, and does or does not say %q:\n%s%s", name, args, r.Code, code, says, r.Stdout, r.Stderr)
	}
	return r.Stdout
}
