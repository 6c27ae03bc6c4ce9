package browser_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/browser"
	"github.com/tidemark-cdc/tidemark/internal/ops"
)

// chromium is the browser of all tests of this package.
var chromium *browser.Browser

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if chromium, err = browser.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer chromium.Stop()
	return m.Run()
}

// noon is the clock of all made-up readings.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func ago(seconds int) time.Time { return noon.Add(-time.Duration(seconds) * time.Second) }

// position is the first position of the n-th made-up segment.
func position(n int) string { return fmt.Sprintf("00000001-%016X-0000000000", 0x1000+n) }

func segmentOf(n int, state ops.State) ops.Segment {
	s := ops.Segment{
		First: position(n), FirstLSN: fmt.Sprintf("0/%X", 0x1000+n), LastLSN: fmt.Sprintf("0/%X", 0x1001+n),
		Tables: "public.orders and 2 more", Rows: int64(1000 + n), Bytes: 3 << 20, Since: ago(200 - n), State: state,
		Workflow: "tidemark/shop/" + position(n), Link: "http://127.0.0.1:9/namespaces/default/workflows/tidemark%2Fshop%2F" + position(n),
	}
	if state == ops.Finished {
		s.Finished = ago(100)
	}
	return s
}

const slowDown = "put object 2026/01/02/00000001-….zstd.parquet: the store asks for fewer requests: 503 SlowDown: Please reduce your request rate: it is tried again"

// well is a pipeline of which nothing is to be said.
func well() ops.Snapshot {
	return ops.Snapshot{
		At: noon, Pipeline: "shop", Verb: "streamer", Version: "v1.2.3", Ready: true, Reasons: []string{},
		Ack: ops.Ack{Level: ops.LevelOK, What: "Nothing holds the ack"},
		Figures: []ops.Figure{
			{Name: "Connection", Value: "streaming"}, {Name: "Ack", Value: "0/1000", Note: "recorded at 11:59:59 UTC"},
			{Name: "Lag", Value: "12.0 KiB", Note: "of WAL behind the ack"}, {Name: "Kept by Postgres", Value: "16.3 MiB", Note: "of WAL for the slot"},
		},
		Ring:     ops.Ring{Done: 1234567, Dispatched: ops.Range{Changes: 1001, Bytes: 4 << 20}, Waiting: ops.Range{Changes: 300, Bytes: 1 << 20}, Free: 251 << 20},
		Segments: ops.Segments{Shown: []ops.Segment{segmentOf(1, ops.Running)}},
		Findings: []ops.Finding{{Level: ops.LevelOK, Source: "preflight", About: "Postgres", What: "PostgreSQL 18, a primary, with wal_level logical", Since: ago(7200)}},
	}
}

// outage is one whose lake takes nothing, and two segments of which were stored
// just before.
func outage() ops.Snapshot {
	s := well()
	s.Ready = false
	s.Reasons = []string{"the ack stands still: segment " + position(1) + " is under way since 2026-01-02T11:56:41Z and not in the lake"}
	s.Ack = ops.Ack{Level: ops.LevelWarning, What: "Segment " + position(1) + " holds the ack since 11:56:41 UTC", Why: "upload attempt 7 failed: " + slowDown}
	s.Figures[2].Value = "143.0 MiB"
	s.Ring = ops.Ring{Done: 1234567, Dispatched: ops.Range{Changes: 40_000, Bytes: 120 << 20}, Finished: ops.Range{Changes: 8000, Bytes: 36 << 20}, Waiting: ops.Range{Changes: 12_000, Bytes: 41 << 20}, Free: 95 << 20}
	states := []ops.State{ops.Retrying, ops.Retrying, ops.Finished, ops.Retrying, ops.Finished, ops.Finished, ops.Retrying, ops.Running, ops.Waiting, ops.Broken, ops.Running}
	s.Segments.Shown = nil
	for i, state := range states {
		x := segmentOf(i+1, state)
		x.Holds = i == 0
		switch state {
		case ops.Retrying:
			x.Attempt, x.Error, x.Doing = 8, slowDown, "attempt 8 begins at 12:00:31 UTC"
		case ops.Waiting:
			x.Error, x.Doing = "malformed pgoutput message of table public.orders (the message has 70 bytes)", "tidemark segments retry, or quarantine"
		case ops.Running:
			x.Attempt, x.Doing = 1, "attempt 1 is under way since 11:59:58 UTC"
		case ops.Broken:
			x.Doing = "it is started again"
		}
		s.Segments.Shown = append(s.Segments.Shown, x)
	}
	s.Findings = append(s.Findings,
		ops.Finding{Level: ops.LevelWarning, Source: "drift", What: "public.refunds is not published", Since: ago(4000), Fix: `see "tables that leave" in the operations guide`},
		ops.Finding{Level: ops.LevelWarning, Source: "preflight", About: "Postgres", What: "max_slot_wal_keep_size sets no limit: the slot can fill the disk", Since: ago(7200), Fix: "set max_slot_wal_keep_size"})
	return s
}

// past is the history of a pipeline in the middle of an outage, up to now.
func past() *ops.History {
	h := new(ops.History)
	var received, inLake int64
	for i := range 180 {
		s := ops.Sample{LagBytes: 200_000 + int64(i%7)*30_000, Latency: time.Duration(1500+i%5*300) * time.Millisecond, Age: time.Second}
		received += int64(5000 + i%11*300)
		if i < 140 {
			inLake = received
		} else {
			s.LagBytes, s.Latency, s.Age = int64(i-140)*3_700_000, -1, time.Duration(i-140)*5*time.Second
		}
		s.Received, s.InLake = received, inLake
		h.Add(time.Now().Add(time.Duration(i-180)*5*time.Second), s)
	}
	return h
}

// site is a process' page with readings that a test makes up.
type site struct {
	t    *testing.T
	addr string
	page ops.Page

	mu  sync.Mutex
	now ops.Snapshot

	stop context.CancelFunc
	done chan error
}

// serve serves s until the test ends; change may set up the page.
func serve(t *testing.T, s ops.Snapshot, change func(*ops.Page)) *site {
	t.Helper()
	w := &site{t: t, addr: "127.0.0.1:0", now: s}
	w.page = ops.Page{
		Ready: func() []string { return nil }, Status: func() any { return nil }, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
		Live: &ops.Live{Snapshot: w.get, Sample: func() ops.Sample { return ops.Sample{LagBytes: -1, Latency: -1} }, History: past()},
	}
	if change != nil {
		change(&w.page)
	}
	w.start()
	t.Cleanup(w.end)
	return w
}

func (w *site) start() {
	w.t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(w.t.Context(), "tcp", w.addr)
	if err != nil {
		w.t.Fatal(err)
	}
	w.addr = ln.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	w.stop, w.done = stop, make(chan error, 1)
	go func() { w.done <- w.page.Serve(ctx, ln) }()
}

func (w *site) end() {
	w.t.Helper()
	if w.stop == nil {
		return
	}
	w.stop()
	if err := <-w.done; err != nil {
		w.t.Error(err)
	}
	w.stop = nil
}

func (w *site) url() string { return "http://" + w.addr + "/" }

func (w *site) get() ops.Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *site) set(s ops.Snapshot) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = s
}
