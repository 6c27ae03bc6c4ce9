package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/config"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// servePage serves answers by path, and gives a Config that names the server.
func servePage(t *testing.T, answers map[string]any) *config.Config {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewEncoder(w).Encode(answers[r.URL.Path]); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(srv.Close)
	c := testConfig(t)
	c.Ops.Listen = strings.TrimPrefix(srv.URL, "http://")
	return c
}

func streamingStatus() *streamer.Status {
	ref := segment.Ref{Pipeline: "shop", First: change.Position{Timeline: 1, LSN: 0x200}, Rows: 7, Bytes: 2048}
	st := &streamer.Status{
		Pipeline: "shop", State: "streaming", Connected: true, Timeline: 1, Adopted: 2, Reconnects: 1,
		Received: change.Position{Timeline: 1, LSN: 0x300},
		Drift:    []streamer.Drift{{Table: "public.orders", Kind: streamer.Unpublished, Since: time.Now().Add(-time.Minute)}},
		InFlight: []streamer.Flight{{Ref: ref, Since: time.Now().Add(-3 * time.Second)}},
	}
	st.Ring.Waiting.Changes, st.Ring.Waiting.Bytes, st.Ring.Free.Bytes = 5, 1<<20, 255<<20
	return st
}

func TestStatusShowsSlotLakeRingAndSegments(t *testing.T) {
	c := servePage(t, map[string]any{"/status": pageStatus{Verb: "streamer", Pipeline: "shop", Ready: true, Streamer: streamingStatus()}})
	l := lake.New("s3://bucket/shop", lake.NewMemory())
	if err := l.CreateIdentity(t.Context(), lake.Identity{Pipeline: "shop", SystemID: "71", Timeline: 1, StartLSN: 0x100}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.WriteAck(t.Context(), lake.AckRecord{Ack: 0x1FF, Timeline: 1, Writer: "w", At: time.Now()}, ""); err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.WritePause(t.Context(), lake.Pause{By: "ann", Reason: "the bucket moves", Since: time.Now()}); err != nil {
		t.Fatal(err)
	}
	pg := &fakePostgres{publication: true, slot: &replication.SlotInfo{Name: "tidemark_shop", Active: true, ActivePID: 42, ConfirmedFlush: 0x1FF, LagBytes: 3 << 10, RetainedBytes: 5 << 20, WALStatus: "reserved"}}
	r, err := readStatus(t.Context(), c, pg, l, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r.writeText(&out)
	has(t, "status", out.String(),
		"pipeline   shop", "PAUSED     paused by ann since 2", "because: the bucket moves", "read by process 42", "confirmed 0/1FF, 3.0 KiB behind",
		"wal        fine: Postgres keeps 5.0 MiB of WAL for the slot; max_slot_wal_keep_size sets no limit, so the disk is the limit",
		"begins at 0/100 on timeline 1", "ack 0/1FF",
		"streaming, timeline 1, 2 adopted, 1 reconnects", "drift      public.orders is not published, seen 1m0s ago", "waiting 5 (1.0 MiB), free 255.0 MiB",
		"1 segments", "00000001-0000000000000200-0000000000, 7 rows, 2.0 KiB, for 3s; holds the ack")

	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back statusReport
	if err := json.Unmarshal(text, &back); err != nil || back.Process.Streamer.Adopted != 2 || back.Ack.Ack != 0x1FF || back.Paused == nil || back.Paused.By != "ann" || len(back.Process.Streamer.Drift) != 1 {
		t.Errorf("JSON does not read back: %v, %s", err, text)
	}
}

func TestStatusShowsTheWALAsTheProcessSeesIt(t *testing.T) {
	st, left := streamingStatus(), 2.5
	safe, rate := int64(10<<30), float64(1<<20)
	st.WAL = &streamer.WAL{Level: streamer.WALAlarm, RetainedBytes: 90 << 30, SafeBytes: &safe, BytesPerSecond: &rate, HoursLeft: &left, Held: "a transaction", Do: "end it"}
	c := servePage(t, map[string]any{"/status": pageStatus{Verb: "streamer", Pipeline: "shop", Streamer: st}})
	r, err := readStatus(t.Context(), c, &fakePostgres{slot: &replication.SlotInfo{}}, lake.New("s3://bucket/shop", lake.NewMemory()), nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r.writeText(&out)
	has(t, "status", out.String(), "wal        alarm: Postgres keeps 90.0 GiB of WAL for the slot, 1.0 MiB more each second; at this rate the slot can be lost in 2.5 hours (after another 10.0 GiB). What holds it: a transaction; end it\n")
	if text, err := json.Marshal(r); err != nil || !bytes.Contains(text, []byte(`"wal":{"level":"alarm",`)) || !bytes.Contains(text, []byte(`"hours_left":2.5`)) {
		t.Errorf("JSON: %v, %s", err, text)
	}
}

func TestStatusShowsWhatItCanAndFailsForWhatItCannot(t *testing.T) {
	c := testConfig(t) // ops.listen is off
	pg := &fakePostgres{fail: map[string]error{"inspect": errors.New("no route")}}
	r, err := readStatus(t.Context(), c, pg, lake.New("s3://bucket/shop", lake.NewMemory()), nil)
	if err == nil || !strings.Contains(err.Error(), "no route") {
		t.Errorf("got %v", err)
	}
	var out bytes.Buffer
	r.writeText(&out)
	has(t, "status", out.String(), "not set up: run tidemark setup", "ops.listen is off")
}

func TestStatusOfAnotherPipelinesProcessIsNotShown(t *testing.T) {
	c := servePage(t, map[string]any{"/status": pageStatus{Verb: "streamer", Pipeline: "other", Streamer: streamingStatus()}})
	r, err := readStatus(t.Context(), c, &fakePostgres{}, lake.New("s3://bucket/shop", lake.NewMemory()), nil)
	if err != nil || r.Process != nil || !strings.Contains(r.Unreachable, `of pipeline "other"`) {
		t.Errorf("process %v, %s (%v)", r.Process, r.Unreachable, err)
	}
}

func TestHealthKeepsTheBeginningOfAnOutage(t *testing.T) {
	var h health
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	h.temporalOutage(begin, errors.New("refused"))
	h.temporalOutage(begin.Add(time.Minute), errors.New("still refused"))
	has(t, "reasons", strings.Join(h.reasons(), "\n"), "since 2026-01-02T03:04:05Z: still refused")
	h.temporalOutage(time.Time{}, nil)
	if got := h.reasons(); len(got) > 0 {
		t.Errorf("still %q", got)
	}
}
