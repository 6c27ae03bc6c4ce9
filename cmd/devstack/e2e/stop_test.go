package e2e

import (
	"encoding/json"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/load"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
	"github.com/tidemark-cdc/tidemark/internal/lake"
)

// Three ways to end a process in peace, one after the other on one lake under
// load: with time enough, without it, and by a second signal.
func TestSignalsStopInPeaceAndNothingIsLostOrDoubled(t *testing.T) {
	few := pipeline.Settings{
		"segment.max_rows": 300, "segment.max_age": "200ms",
		"streamer.shutdown_timeout": "90s", "worker.drain_timeout": "90s",
	}
	onEach(t, harness.Options{Settings: few, TemporalMemory: true}, func(t *testing.T, h *harness.Harness) {
		l := h.Load(load.Config{Seed: 7, Rate: 2000, Largest: 1000})

		p := h.Run()
		h.WaitObjects(20)
		signal(t, p, syscall.SIGTERM)
		h.Within(90*time.Second, "a graceful stop under load", p.Done())
		ended(t, p, 0)
		// It has finished what it began: no object stands beyond the ack, and
		// Postgres knows all of it.
		report := verified(t, h)
		if n := report.Chains[0].InFlight; n != 0 {
			t.Errorf("after a graceful stop %d objects stand beyond the ack", n)
		}
		if slot := h.AckLSN(); slot != report.Ack.Ack {
			t.Errorf("after a graceful stop the lake has the ack %s on record, and the slot stands at %s", report.Ack.Ack, slot)
		}

		// A store that does not answer holds it for as long as it was told, and the
		// few seconds that a last record may take; the worker's own time is not added.
		p = h.Run("--streamer-shutdown-timeout=3s")
		p.WaitStreaming()
		if n := p.Status().Adopted; n != 0 {
			t.Errorf("after a graceful stop the next process has adopted %d segments", n)
		}
		held := h.Stack.Faults.Hold(new(harness.Upload).Match, 0)
		h.WaitHits(held, 1)
		before := len(h.Objects())
		h.WaitObjects(before + 10)
		hung := h.Stack.Faults.Hold(stack.Any, 0)
		signal(t, p, syscall.SIGTERM)
		h.Within(45*time.Second, "a graceful stop while the store hangs", p.Done())
		ended(t, p, 0)
		hung.Remove()
		held.Remove()

		// The next one adopts what was in flight; a second signal does not wait.
		p = h.Run()
		p.WaitLog("adopting ", harness.Bound)
		held = h.Stack.Faults.Hold(new(harness.Upload).Match, 0)
		h.WaitHits(held, 1)
		before = len(h.Objects())
		h.WaitObjects(before + 10)
		signal(t, p, syscall.SIGTERM)
		p.WaitLog("stopping: no more is read", harness.Bound)
		signal(t, p, syscall.SIGTERM)
		h.Within(30*time.Second, "a stop by two signals", p.Done())
		ended(t, p, 1)

		p = h.Run()
		p.WaitLog("adopting a recorded segment", harness.Bound)
		held.Remove()
		want := h.StopLoad(l)
		h.WaitAck()
		h.LakeHas(want)
		h.SameAsPostgres()
		p.Stop()
	})
}

func signal(t *testing.T, p *harness.Proc, sig syscall.Signal) {
	t.Helper()
	if !p.Running() {
		t.Fatalf("the process has ended by itself with status %d; the end of its log:\n%s", p.ExitCode(), p.Tail(30))
	}
	if err := p.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

func ended(t *testing.T, p *harness.Proc, status int) {
	t.Helper()
	if got := p.ExitCode(); got != status {
		t.Fatalf("the process has ended with status %d, want %d; the end of its log:\n%s", got, status, p.Tail(30))
	}
}

// verified is what tidemark verify says of a lake that is well.
func verified(t *testing.T, h *harness.Harness) lake.Report {
	t.Helper()
	r := h.Verb("verify", "--json")
	var report lake.Report
	if err := json.Unmarshal([]byte(r.Stdout), &report); err != nil {
		t.Fatalf("read what tidemark verify says: %v\n%s%s", err, r.Stdout, r.Stderr)
	}
	if r.Code != 0 || report.Ack == nil || len(report.Chains) != 1 {
		t.Fatalf("tidemark verify ended with status %d:\n%s", r.Code, r.Stdout)
	}
	return report
}
