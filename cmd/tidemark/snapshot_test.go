package main

import (
	"encoding/json"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/operator"
	"github.com/tidemark-cdc/tidemark/internal/ops"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
	"github.com/tidemark-cdc/tidemark/streamer/ring"
)

// showing is a process as far as a snapshot needs it.
func showing(t *testing.T) *process {
	t.Helper()
	p := &process{cfg: testConfig(t), roles: roles{streamer: true}, health: &health{}, uploads: &failedUploads{}}
	s, err := streamer.New(streamer.Config{Pipeline: "shop", Replication: replication.Config{ConnString: "postgres://localhost/", Slot: "s", Publications: []string{"p"}}},
		streamer.Deps{Tracker: noTracker{}, Lake: lake.New("file:///x", lake.NewMemory()), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	p.streamer = s
	p.observer = ops.NewStreamerObserver(prometheus.NewRegistry(), "shop", nil, nil)
	p.operator = operator.New(nil, operator.Config{Pipeline: "shop", Namespace: "default", UI: "http://ui.example.com/"})
	p.attempts = &attempts{flights: func() []streamer.Flight { return nil }}
	return p
}

// noTracker is never called.
type noTracker struct{ streamer.Tracker }

func TestASnapshotShowsSegmentsInStreamOrderWithWhatTemporalSays(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	p := showing(t)
	flight := func(n int) streamer.Flight {
		return streamer.Flight{Ref: segment.Ref{Pipeline: "shop", First: segmentAt(n), Last: segmentAt(n), Rows: int64(n), Bytes: 10, Tables: []string{"public.a"}, TableCount: 1}, Since: now.Add(-time.Minute)}
	}
	done := func(n int) streamer.Flight { f := flight(n); f.Finished = now.Add(-time.Second); return f }
	st := streamer.Status{InFlight: []streamer.Flight{flight(1), flight(3), flight(5), flight(7)}, Ahead: []streamer.Flight{done(2), done(4)}, Ring: ring.Stats{FinishedSegments: 9}}
	p.attempts.known = map[change.Position]attempt{
		segmentAt(1): {operator.Segment{State: operator.Retrying, Attempt: 4, LastError: "upload x (LSN 0/1 to 0/1): denied", Next: now.Add(5 * time.Second)}, &operator.Pending{Attempt: 4}},
		segmentAt(3): {operator.Segment{State: operator.Running, Attempt: 1}, &operator.Pending{Attempt: 1, Began: now.Add(-2 * time.Second)}},
		segmentAt(5): {operator.Segment{State: operator.Waiting, LastError: "bad message (the message has 2 bytes, in hex 4142)"}, nil},
	}
	got := p.segments(st, now)
	var short []string
	for _, s := range got.Shown {
		short = append(short, strings.Join([]string{s.FirstLSN, string(s.State), s.Doing, s.Error}, "|"))
	}
	want := []string{
		"0/1|retrying|attempt 4 begins at 12:00:05 UTC|denied", "0/2|finished||", "0/3|running|attempt 1 is under way since 11:59:58 UTC|",
		"0/4|finished||", "0/5|waiting|tidemark segments retry, or quarantine|bad message (the message has 2 bytes)", "0/7|running||",
	}
	if !slices.Equal(short, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(short, "\n"), strings.Join(want, "\n"))
	}
	if s := got.Shown[0]; !s.Holds || got.Shown[2].Holds || s.Attempt != 4 || s.Tables != "public.a" || s.Link != "http://ui.example.com/namespaces/default/workflows/tidemark%2Fshop%2F"+segmentAt(1).String() {
		t.Errorf("the first: %+v", s)
	}
	if got.MoreRunning != 0 || got.MoreFinished != 7 {
		t.Errorf("%d running and %d finished are not shown, want 0 and 7", got.MoreRunning, got.MoreFinished)
	}
}

func TestASnapshotShowsABoundedNumberOfSegments(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	p := showing(t)
	p.operator = operator.New(nil, operator.Config{Pipeline: "shop"})
	all := inFlight(1000, now)
	st := streamer.Status{InFlight: slices.Clone(all[:700]), Ahead: slices.Clone(all[700:])}
	for i := range st.Ahead {
		st.Ahead[i].Finished = now
	}
	st.InFlight = append(st.InFlight[:100], st.InFlight[150:]...)
	got := p.segments(st, now)
	if len(got.Shown) != ops.MaxSegments || got.MoreRunning != 450 || got.MoreFinished != 300 || got.Shown[0].Link != "" {
		t.Errorf("%d shown, %d running and %d finished more, link %q", len(got.Shown), got.MoreRunning, got.MoreFinished, got.Shown[0].Link)
	}
}

func TestASnapshotOfAProcessThatBeginsIsWhole(t *testing.T) {
	p := showing(t)
	p.findings = []finding{{Level: levelPass, About: aboutLake, What: "fine"}, {Level: levelWarning, About: aboutPostgres, What: "two\nlines", Fix: "do it"}}
	p.begun = time.Date(2026, 1, 2, 11, 0, 0, 0, time.UTC)
	live := p.live()
	text, err := json.Marshal(live.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	// What the page reads as lists is one.
	if strings.Contains(string(text), ":null") {
		t.Errorf("it has nothing where the page wants a list: %s", text)
	}
	var s ops.Snapshot
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	if s.Ready || s.Ack.What != "There is no connection to Postgres" || s.Verb != "streamer" || s.Pipeline != p.cfg.Pipeline {
		t.Errorf("got %s", text)
	}
	if f := s.Findings; len(f) != 2 || f[0].Level != ops.LevelWarning || f[0].What != "two; lines" || f[0].Source != "preflight" || f[0].Since != p.begun || f[1].Level != ops.LevelOK {
		t.Errorf("findings: %+v", f)
	}
	if sample := live.Sample(); sample.LagBytes != -1 || sample.Latency != -1 {
		t.Errorf("sample: %+v", sample)
	}
}

func TestFindingsAreAlsoWhatHasDriftedAndTheWAL(t *testing.T) {
	since := time.Date(2026, 1, 2, 11, 0, 0, 0, time.UTC)
	list := sinceFindings(streamer.Status{
		Drift: []streamer.Drift{{Table: "public.a", Kind: streamer.Dropped, Since: since}, {Table: "public.b", Kind: streamer.Recreated, Published: true}},
		WAL:   &streamer.WAL{Level: streamer.WALAlarm, RetainedBytes: 1 << 30, Since: since},
	})
	if len(list) != 3 || list[0].Level != ops.LevelWarning || list[0].What != "public.a does not exist" || !list[0].Since.Equal(since) ||
		list[1].Level != ops.LevelNote || list[2].Level != ops.LevelError || !strings.Contains(list[2].What, "keeps 1.0 GiB") {
		t.Errorf("got %+v", list)
	}
	if list := sinceFindings(streamer.Status{WAL: &streamer.WAL{Level: streamer.WALFine}}); len(list) > 0 {
		t.Errorf("where all is well: %+v", list)
	}
}

func TestFiguresShowWhatIsKnown(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	safe := int64(2 << 20)
	st := streamer.Status{
		Phase: streamer.Streaming, Reconnects: 2, AckRecorded: 0x100, RecordedAt: now.Add(-3 * time.Second), Received: segmentAt(0x200), Timeline: 1,
		Slot: &replication.SlotInfo{LagBytes: 2048}, WAL: &streamer.WAL{RetainedBytes: 1 << 20, SafeBytes: &safe}, Adopted: 4,
	}
	var text []string
	for _, f := range figures(st, now) {
		text = append(text, f.Name+" "+f.Value+" "+f.Note)
	}
	has(t, "the figures", strings.Join(text, "\n"), "Connection streaming connected again 2 times", "Ack 0/100 recorded at 11:59:57 UTC", "Received up to 0/200 timeline 1",
		"Lag 2.0 KiB", "Kept by Postgres 1.0 MiB of WAL for the slot, 2.0 MiB more until it can be lost", "Adopted 4")
	if got := figures(streamer.Status{Phase: streamer.Connecting}, now); len(got) != 1 {
		t.Errorf("before anything is known: %+v", got)
	}
}

func TestStatusShowsWhatHoldsTheAck(t *testing.T) {
	c := servePage(t, map[string]any{"/status": pageStatus{Verb: "streamer", Pipeline: "shop", Streamer: streamingStatus(),
		Holds: &ops.Ack{Level: ops.LevelWarning, What: "Segment x holds the ack", Why: "denied"}}})
	r, err := readStatus(t.Context(), c, &fakePostgres{}, lake.New("file://"+filepath.ToSlash(t.TempDir()), lake.NewMemory()), nil)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	r.writeText(&out)
	has(t, "status", out.String(), "ack        Segment x holds the ack: denied")
}
