package e2e

import (
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/tally"
)

// A streamer without a worker records a segment and is killed; then somebody
// advances the slot over its rows. On one version of Postgres: package streamer
// has these and other situations on real servers, and here it is the binary,
// Temporal and its visibility that count.
func TestASlotThatWasAdvancedByHandIsResolved(t *testing.T) {
	h := harness.New(t, harness.Options{Postgres: 15, TemporalMemory: true})
	p := h.Streamer()
	p.WaitStreaming()
	h.SQL(`insert into public.events values (1, 'a', 'b'), (2, 'a', 'b')`)
	p.WaitStatus(func(s harness.Status) string {
		if len(s.InFlight) != 1 {
			return "no segment is recorded"
		}
		return ""
	})
	verb(t, h, 2, "stop the streamer first", "resolve", "--yes")
	p.Kill9()
	h.Eventually(harness.Bound, func() string {
		if h.SlotActive() {
			return "the slot is still being read"
		}
		return ""
	})
	h.SQL(`select pg_replication_slot_advance($1, pg_current_wal_lsn())`, h.Settings.Slot())

	p = h.Run()
	h.Within(harness.Bound, "a streamer whose slot was advanced", p.Done())
	if out := p.Output(); p.ExitCode() != 1 || !strings.Contains(out, "ahead of what the lake has on record") || !strings.Contains(out, "tidemark resolve") {
		t.Fatalf("it ended with status %d:\n%s", p.ExitCode(), p.Tail(10))
	}
	h.Eventually(harness.Bound, func() string {
		if r := h.Verb("resolve", "--dry-run"); r.Code != 0 || !strings.Contains(r.Stdout, "can never be finished") {
			return "resolve does not find the segment: " + r.Stdout + r.Stderr
		}
		return ""
	})
	verb(t, h, 2, "give --yes", "resolve")
	verb(t, h, 0, "given up in Temporal: 1 segment", "resolve", "--yes")
	verb(t, h, 0, "nothing to resolve", "resolve", "--yes")
	verb(t, h, 0, "given-up", "segments", "list", "--state", "given-up")
	if r := h.Verb("replay"); r.Code != 0 || strings.Contains(r.Stdout, "started again") {
		t.Errorf("replay takes what was given up for broken, status %d:\n%s%s", r.Code, r.Stdout, r.Stderr)
	}

	p = h.Run()
	h.SQL(`insert into public.events values (3, 'a', 'b')`)
	h.WaitAck()
	p.Stop()
	verb(t, h, 0, "except for 1 recorded gap", "verify")
	h.LakeHas(tally.Counts{{Table: "public.events", Operation: "insert"}: 1})
}
