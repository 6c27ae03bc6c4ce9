package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/proc"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/tally"
)

// The machine has no more files, and then no more memory, to give to a process:
// the first it waits out and says so, the second ends it at once, as the
// kernel's killer would.
//
// On one version of Postgres: nothing here has to do with it.
func TestAProcessWithoutFilesGoesOnAndOneWithoutMemoryIsReplaced(t *testing.T) {
	t.Parallel()
	h := harness.New(t, harness.Options{
		Postgres: 15, TemporalMemory: true,
		Settings: pipeline.Settings{"segment.max_rows": 1000, "segment.max_age": "100ms"},
	})
	want, rows := tally.Counts{}, int64(0)
	insert := func(n int64) {
		t.Helper()
		h.SQL(`insert into public.events select i, 'a', repeat(md5(i::text), 4) from generate_series($1::bigint, $2::bigint) i`, rows+1, rows+n)
		rows += n
		want[tally.Kind{Table: "public.events", Operation: "insert"}] += n
	}

	// Too few files to start with: refused, and nothing has changed.
	stood := h.Ack()
	const few = 8 // with fewer Go's runtime itself does not start
	r, err := withFewFiles(t, h, few).Verb(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	if r.Code != 2 || !strings.Contains(r.Stderr, "too many open files") {
		t.Errorf("with a limit of %d files a start ends with status %d:\n%s", few, r.Code, r.Stderr)
	}
	if now := h.Ack(); now != stood {
		t.Errorf("the slot stood at %s and stands at %s now", stood, now)
	}

	// No file more, and then every connection breaks.
	p := h.Run()
	p.WaitStreaming()
	insert(100)
	h.WaitAck()
	before, err := p.Limit(unix.RLIMIT_NOFILE, 3)
	if err != nil {
		t.Fatal(err)
	}
	walsender := h.Walsender()
	h.SQL(`select pg_terminate_backend($1)`, walsender)
	insert(2000)
	p.WaitLog("too many open files", harness.Bound)
	p.WaitLog("LimitNOFILE", harness.Bound)
	stood = h.Ack()
	if _, err := p.Limit(unix.RLIMIT_NOFILE, before); err != nil {
		t.Fatal(err)
	}
	h.WaitAck()
	h.LakeHas(want)
	if !p.Running() || h.Ack() == stood {
		t.Errorf("the process has ended, or its ack stands where it stood without files: %s", stood)
	}

	// No memory more, while the ring fills.
	held := h.Stack.Faults.Hold(new(harness.Upload).Match, 0)
	insert(100)
	h.WaitHits(held, 1)
	if _, err := p.Limit(unix.RLIMIT_DATA, 1<<20); err != nil {
		t.Fatal(err)
	}
	h.Eventually(harness.Bound, func() string {
		if p.Running() {
			insert(50_000)
			return "the process lives on without memory"
		}
		return ""
	})
	if p.ExitCode() == 0 || !strings.Contains(p.Output(), "fatal error") {
		t.Errorf("without memory the process ended with status %d; the end of its log:\n%s", p.ExitCode(), p.Tail(5))
	}
	held.Remove()
	p = h.Run()
	h.WaitAck()
	h.LakeHas(want)
	p.Stop()
}

// withFewFiles is the pipeline with a program that may open n files.
func withFewFiles(t *testing.T, h *harness.Harness, n int) *pipeline.Pipeline {
	t.Helper()
	p := *h.Pipeline
	p.Binary = filepath.Join(h.Stack.Dir(), "few-files")
	script := fmt.Sprintf("#!/bin/sh\nulimit -n %d\nexec %q \"$@\"\n", n, h.Pipeline.Binary)
	if err := os.WriteFile(p.Binary, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return &p
}

// largeRing and largeAllowed bound the memory below, in MiB.
const (
	largeRing    = 32
	largeAllowed = largeRing + 64
)

// One transaction, nine times as large as the ring: the streamer's memory stays
// where the ring's size and the documented allowance put it. The same with
// transactions of gigabytes: devstack bench -only memory.streamer -large rows.
func TestMemoryStaysFlatThroughALargeTransaction(t *testing.T) {
	t.Parallel()
	h := harness.New(t, harness.Options{
		Postgres: 18, TemporalMemory: true,
		Settings: pipeline.Settings{
			"ring.max_bytes": fmt.Sprintf("%dMiB", largeRing), "segment.max_bytes": "8MiB", "segment.max_rows": 100_000,
		},
		PostgresSettings: map[string]string{"max_wal_size": "4GB"},
	})
	p := h.Streamer()
	h.Worker()
	p.WaitStreaming()
	w := proc.Watch(t.Context(), p.PID())
	inserted := h.SQL(`insert into public.events select i, 'a', repeat(md5(i::text), 32) from generate_series(1, 290000) i`).RowsAffected()
	h.WaitAck()
	curve := w.Curve(10)
	peak, err := w.End()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the streamer's anonymous memory in tenths of the passage, MiB: %.0f", curve)
	if peak.Anon > largeAllowed {
		t.Errorf("the streamer had %.0f MiB of anonymous memory, at most %d are allowed", peak.Anon, largeAllowed)
	}
	h.LakeHas(tally.Counts{{Table: "public.events", Operation: "insert"}: inserted})
	p.Stop()
}
