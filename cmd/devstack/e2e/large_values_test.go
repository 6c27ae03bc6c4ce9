package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/tally"
)

// Four values of 49 MB, each three times as large as a segment may be, go through
// one process with its default settings, and then through a streamer and a worker
// that finds all four waiting for it. The anonymous memory of each stays below
// what docs/operations.md has as its limit, and the 64 MiB that it grants a
// container beside that.
//
// On one version of Postgres: it sends both the same.
func TestFourValuesOf49MegabytesStayWithinTheMemoryOfAProcess(t *testing.T) {
	t.Parallel()
	h := harness.New(t, harness.Options{Postgres: 18, TemporalMemory: true, Settings: pipeline.Settings{"segment.max_age": "1s"}})
	h.SQL(`create unlogged table public.large as
		select string_agg(md5(i::text), '') as v from generate_series(1, 49000000 / 32) i`)
	rows := int64(0)
	insert := func() {
		// In one transaction, so that all of them come at once.
		h.SQL(`insert into public.events select id, 'large', v from public.large, generate_series($1::bigint, $1 + 3) id`, rows+1)
		rows += 4
	}
	within := func(name string, limit int64, peak func() int64) {
		t.Helper()
		got := peak() >> 20
		t.Logf("the peak of the anonymous memory of %s was %d MiB", name, got)
		if got > limit+64 {
			t.Errorf("the peak of the anonymous memory of %s was %d MiB, want at most %d", name, got, limit+64)
		}
	}

	p := h.Run()
	p.WaitStreaming()
	memory := watchMemory(t, p)
	insert()
	h.WaitAck()
	within("run", 816, memory)
	p.Stop()

	s := h.Streamer()
	s.WaitStreaming()
	memory = watchMemory(t, s)
	insert()
	s.WaitStatus(func(st harness.Status) string {
		if n := len(st.InFlight); n != 4 {
			return fmt.Sprintf("%d segments are in flight, waiting for 4", n)
		}
		return ""
	})
	w := h.Worker()
	worker := watchMemory(t, w)
	h.WaitAck()
	within("the worker", 512, worker)
	within("the streamer", 304, memory)

	h.LakeHas(tally.Counts{{Table: "public.events", Operation: "insert"}: rows})
	w.Stop()
	s.Stop()
}

// watchMemory looks at a process' anonymous memory all the time; the function that
// it gives ends that and tells the most that was seen, in bytes.
func watchMemory(t *testing.T, p *harness.Proc) (peak func() int64) {
	stop, done := make(chan struct{}), make(chan int64)
	go func() {
		most := int64(0)
		for tick := time.NewTicker(10 * time.Millisecond); ; {
			select {
			case <-stop:
				tick.Stop()
				done <- most
				return
			case <-tick.C:
			}
			if now, err := anonymous(p.PID()); err == nil {
				most = max(most, now)
			}
		}
	}()
	return func() int64 {
		close(stop)
		most := <-done
		if most == 0 {
			t.Error("the process' memory was never seen")
		}
		return most
	}
}

// anonymous is RssAnon of proc(5) in bytes.
func anonymous(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if text, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("the status of process %d has no RssAnon", pid)
}
