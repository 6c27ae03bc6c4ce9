package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/tracker"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// texts are the findings as lines of level and sentence.
func texts(findings []finding) string {
	var lines []string
	for _, f := range findings {
		lines = append(lines, fmt.Sprintf("%s %s", f.Level, f))
	}
	return strings.Join(lines, "\n")
}

// goodFacts are those of a server in order.
func goodFacts() replication.Facts {
	return replication.Facts{
		ServerVersion: 180004, WALLevel: "logical", Role: "me", MayReplicate: true, Database: "shop",
		Slots: 1, MaxSlots: 10, WALSenders: 1, MaxWALSenders: 10, WALSenderTimeout: time.Minute, MaxSlotWALKeep: 100 << 30,
		SlotName: "tidemark_shop",
		Slot:     &replication.SlotInfo{Name: "tidemark_shop", Type: "logical", Plugin: "pgoutput", Database: "shop", WALStatus: "reserved"},
		Publications: []replication.PublicationInfo{{Name: "tidemark_shop", Exists: true, Tables: 3,
			Inserts: true, Updates: true, Deletes: true, Truncates: true}},
	}
}

func TestFactsAreFoundGoodOrEachWithItsFix(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*replication.Facts)
		want   []string
	}{
		"wal_level":    {func(f *replication.Facts) { f.WALLevel = "replica" }, []string{"error Postgres: wal_level is replica: ALTER SYSTEM SET wal_level = 'logical'"}},
		"no privilege": {func(f *replication.Facts) { f.MayReplicate = false }, []string{`error Postgres: the role me may not replicate: ALTER ROLE "me" REPLICATION`}},
		"an old server": {func(f *replication.Facts) { f.ServerVersion = 140001 },
			[]string{"error Postgres: the server is PostgreSQL 14, older than 15"}},
		"no slot left":     {func(f *replication.Facts) { f.Slot, f.MaxSlots = nil, 1 }, []string{"error Postgres: all 1 replication slots"}},
		"no sender left":   {func(f *replication.Facts) { f.MaxWALSenders = 1 }, []string{"error Postgres: all 1 walsenders"}},
		"another plugin":   {func(f *replication.Facts) { f.Slot.Plugin = "wal2json" }, []string{"error", "plugin wal2json"}},
		"a lost slot":      {func(f *replication.Facts) { f.Slot.WALStatus = "lost" }, []string{"error", "was invalidated"}},
		"unlimited WAL":    {func(f *replication.Facts) { f.MaxSlotWALKeep = -1 }, []string{"warning Postgres: max_slot_wal_keep_size is unlimited"}},
		"little WAL":       {func(f *replication.Facts) { f.MaxSlotWALKeep = 64 << 20 }, []string{"warning Postgres: max_slot_wal_keep_size is only 64 MB"}},
		"an empty one":     {func(f *replication.Facts) { f.Publications[0].Tables = 0 }, []string{"warning", "has no tables"}},
		"missing identity": {func(f *replication.Facts) { f.WithoutIdentity = []string{`public."A"`} }, []string{`warning`, `public."A": add a primary key, or ALTER TABLE public."A" REPLICA IDENTITY FULL;`}},
		"two at once": {func(f *replication.Facts) { f.WALLevel, f.MayReplicate, f.MaxSlotWALKeep = "minimal", false, -1 },
			[]string{"error", "wal_level", "error", "may not replicate", "warning", "unlimited"}},
		"what setup makes": {func(f *replication.Facts) { f.Slot, f.Publications[0].Exists = nil, false }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := goodFacts()
			tc.change(&f)
			var wrong []finding
			for _, x := range factFindings(f) {
				if x.Level != levelPass {
					wrong = append(wrong, x)
				}
			}
			has(t, "findings", texts(wrong), tc.want...)
			if len(tc.want) == 0 && len(wrong) > 0 {
				t.Errorf("found %s", texts(wrong))
			}
			for _, w := range wrong {
				if w.Fix == "" {
					t.Errorf("no way out of %q", w.What)
				}
			}
		})
	}
	good := texts(factFindings(goodFacts()))
	has(t, "findings", good, "ok Postgres: PostgreSQL 18", "the role me may", "1 of 10 replication slots", "is valid, and nobody", "has 3 tables", "usable replica identity")
	if strings.Contains(good, "warning") || strings.Contains(good, "error") {
		t.Errorf("a good server: %s", good)
	}
}

func TestTheWayToTheServerIsLookedAt(t *testing.T) {
	direct := []uint32{7, 7, 7}
	for name, tc := range map[string]struct {
		c    replication.Connection
		want []string
	}{
		"direct":               {replication.Connection{Announced: 7, Backends: direct}, []string{"ok", "direct one", "ok", "agree within"}},
		"a session pooler":     {replication.Connection{Announced: 1, Backends: direct}, []string{"warning", "a pooler or proxy"}},
		"a transaction pooler": {replication.Connection{Announced: 1, Backends: []uint32{7, 8, 7}}, []string{"error", "each transaction another backend", "the server itself"}},
		"a fast clock":         {replication.Connection{Announced: 7, Backends: direct, Ahead: time.Minute}, []string{"ok", "warning", "differ by 1m0s"}},
		"a slow clock":         {replication.Connection{Announced: 7, Backends: direct, Ahead: -time.Minute}, []string{"ok", "warning", "differ by 1m0s"}},
		"a slow network":       {replication.Connection{Announced: 7, Backends: direct, Ahead: 6 * time.Second, Within: 2 * time.Second}, []string{"ok", "ok", "agree"}},
	} {
		t.Run(name, func(t *testing.T) { has(t, "findings", texts(wayFindings(tc.c)), tc.want...) })
	}
}

func TestTheProbeOfTheLakeIsTold(t *testing.T) {
	for name, tc := range map[string]struct {
		conditional bool
		err         error
		want        []string
	}{
		"good":               {true, nil, []string{"ok", "If-None-Match and If-Match"}},
		"unconditional":      {false, nil, []string{"ok", "warning", "keeps two streamers apart"}},
		"ignores conditions": {true, fmt.Errorf("x: %w", lake.ErrIgnoresConditions), []string{"error", "lake.conditional_writes: false"}},
		"cannot remove":      {true, fmt.Errorf("x: %w", lake.ErrProbeLeft), []string{"warning", "s3:DeleteObject"}},
		"knows no headers":   {true, &lake.Error{Op: "write", Object: "k", Kind: lake.Misconfigured, Err: errors.New("NotImplemented")}, []string{"error", "NotImplemented", "lake.conditional_writes: false"}},
		"denied":             {true, &lake.Error{Op: "write", Object: "k", Kind: lake.Denied, Err: errors.New("AccessDenied")}, []string{"error", "AccessDenied"}},
	} {
		t.Run(name, func(t *testing.T) {
			has(t, "findings", texts(probeFindings("s3://b/p", tc.conditional, tc.err)), tc.want...)
		})
	}
}

func TestWhoLooksDecidesWhatIsRefused(t *testing.T) {
	made := finding{About: aboutPipeline, What: "not set up", setup: true}
	harm := finding{Level: levelWarning, About: aboutPostgres, What: "no identity", harm: true}
	for name, tc := range map[string]struct {
		found finding
		why   purpose
		allow bool
		want  level // empty: it is left out
	}{
		"check, before setup":           {made, forCheck, false, levelWarning},
		"setup, before setup":           {made, forSetup, false, ""},
		"run, before setup":             {made, forRun, false, levelError},
		"check, a table without":        {harm, forCheck, false, levelError},
		"setup, a table without":        {harm, forSetup, false, levelError},
		"run, a table without":          {harm, forRun, false, levelError},
		"check, a table without, known": {harm, forCheck, true, levelWarning},
		"setup, a table without, known": {harm, forSetup, true, levelWarning},
	} {
		t.Run(name, func(t *testing.T) {
			c := testConfig(t)
			c.Postgres.AllowMissingIdentity = tc.allow
			got := judge([]finding{tc.found}, tc.why, c)
			if tc.want == "" && len(got) != 0 || tc.want != "" && (len(got) != 1 || got[0].Level != tc.want) {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
			err := refusal(got)
			var se *statusError
			if (err != nil) != (tc.want == levelError) || err != nil && (!errors.As(err, &se) || se.status != statusRefused) {
				t.Errorf("refused with %v", err)
			}
		})
	}
}

func TestOnlyWarningsAreLogged(t *testing.T) {
	var out bytes.Buffer
	logWarnings([]finding{{Level: levelPass, What: "p"}, {Level: levelWarning, About: aboutPostgres, What: "w", Fix: "f"}}, slog.New(slog.NewTextHandler(&out, nil)))
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `level=WARN msg="preflight: w" about=Postgres fix=f`) {
		t.Errorf("logged %q", got)
	}
}

func TestTheReportHasErrorsFirstAndItsStatus(t *testing.T) {
	findings := append([]finding{passed(aboutLake, "good"), {Level: levelWarning, About: aboutPostgres, What: "so so", Fix: "do"}},
		temporalFindings([]tracker.Problem{{What: "bad\nvery", Do: "temporal x"}})...)
	var out bytes.Buffer
	err := newCheckReport("shop", findings).write(&out, false)
	var se *statusError
	if !errors.As(err, &se) || se.status != statusRefused {
		t.Errorf("got %v", err)
	}
	has(t, "text", out.String(), "error    Temporal  bad; very\n", "fix: temporal x\n", "warning  Postgres  so so\n", "fix: do\n", "ok       lake      good\n", "1 errors, 1 warnings, 1 in order")

	out.Reset()
	if err := newCheckReport("shop", findings[:2]).write(&out, true); err != nil {
		t.Errorf("without an error: %v", err)
	}
	var got struct {
		Pipeline         string
		Errors, Warnings int
		Findings         []struct{ Level, About, What, Fix string }
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Pipeline != "shop" || got.Errors != 0 || got.Warnings != 1 || len(got.Findings) != 2 || got.Findings[0].Fix != "do" || got.Findings[1].Level != "ok" {
		t.Errorf("JSON is %s", out.String())
	}
}

func TestCheckListsAllThatDoesNotAnswer(t *testing.T) {
	got := run(t, []string{
		"TIDEMARK_PIPELINE=shop", "TIDEMARK_POSTGRES_URL=postgres://me:hunter2@127.0.0.1:1/shop", "TIDEMARK_LAKE_URL=file://" + t.TempDir(),
		"TEMPORAL_ADDRESS=127.0.0.1:1",
	}, "check", "--json")
	var r checkReport
	if err := json.Unmarshal([]byte(got.out), &r); err != nil {
		t.Fatalf("%v in %s%s", err, got.out, got.err)
	}
	if got.status != statusRefused || r.Errors != 2 || r.Warnings != 1 || r.Passed != 1 {
		t.Errorf("status %d, report %+v", got.status, r)
	}
	if strings.Contains(got.out+got.err, "hunter2") {
		t.Error("the password is shown")
	}
}
