package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
	"github.com/tidemark-cdc/tidemark/streamer/settle"
)

// toldSteps reads what a verb has told as JSON: an object a line, and nothing
// else.
func toldSteps(t *testing.T, out string) []step {
	t.Helper()
	var list []step
	for line := range strings.Lines(out) {
		var s step
		dec := json.NewDecoder(strings.NewReader(line))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&s); err != nil || s.What == "" || s.Text == "" {
			t.Fatalf("not a step: %q (%v)", line, err)
		}
		list = append(list, s)
	}
	return list
}

// inShort is what and outcome of steps.
func inShort(list []step) []string {
	var short []string
	for _, s := range list {
		short = append(short, strings.TrimSpace(s.What+" "+s.Outcome))
	}
	return short
}

// Verbs that run until they are stopped have a log; all others that have an
// outcome can tell it as JSON.
func TestEveryVerbThatEndsTellsItsOutcomeAsJSON(t *testing.T) {
	var without []string
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			if len(sub.Commands()) == 0 && sub.Flags().Lookup("json") == nil {
				without = append(without, strings.TrimPrefix(sub.CommandPath(), "tidemark "))
			}
			look(sub)
		}
	}
	look(newRoot(system{}))
	if want := []string{"run", "streamer", "worker"}; !slices.Equal(without, want) {
		t.Errorf("%q have no --json, want %q", without, want)
	}
}

func TestJSONDoesNotAsk(t *testing.T) {
	// No setting is there: it is refused before anything is looked for.
	for _, args := range [][]string{
		{"teardown"}, {"resolve"}, {"setup", "--recreate-slot"}, {"segments", "quarantine", "--all-waiting"},
	} {
		got := run(t, nil, append(args, "--json")...)
		if got.status != statusRefused || got.out != "" || !strings.Contains(got.err, "--json does not ask: give --yes too") {
			t.Errorf("%q: %+v", args, got)
		}
		if got := run(t, nil, append(args, "--json", "--yes")...); strings.Contains(got.err, "does not ask") {
			t.Errorf("%q with --yes: %+v", args, got)
		}
	}
	for _, args := range [][]string{{"resolve", "--dry-run"}, {"setup", "--recreate-slot", "--dry-run"}, {"setup"}} {
		if got := run(t, nil, append(args, "--json")...); strings.Contains(got.err, "does not ask") {
			t.Errorf("%q does not ask: %+v", args, got)
		}
	}
}

func TestSetupTellsItsStepsAsJSON(t *testing.T) {
	pg, attrs, store := &fakePostgres{}, &fakeAttributes{missing: []string{"TidemarkDay"}}, lake.NewMemory()
	var out bytes.Buffer
	told := func(dryRun bool) []step {
		t.Helper()
		out.Reset()
		s := newTestSetup(t, pg, store, attrs, &out)
		s.steps.asJSON, s.dryRun = true, dryRun
		if err := s.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		return toldSteps(t, out.String())
	}
	for _, tc := range []struct {
		dryRun bool
		want   []string
	}{
		{true, []string{"Postgres", "publication missing", "slot missing", "lake missing", "Temporal missing"}},
		{false, []string{"Postgres", "publication made", "slot made", "lake made", "Temporal made"}},
		{true, []string{"Postgres", "publication exists", "slot exists", "lake exists", "Temporal exists"}},
		{false, []string{"Postgres", "publication exists", "slot exists", "lake exists", "Temporal exists"}},
	} {
		list := told(tc.dryRun)
		notes := slices.IndexFunc(list, func(s step) bool { return s.What == "note" })
		if notes < 0 {
			notes = len(list)
		}
		if got := inShort(list[:notes]); !slices.Equal(got, tc.want) {
			t.Errorf("dry run %v: told %q, want %q", tc.dryRun, got, tc.want)
		}
		if list[0].SystemID != "71" || list[1].Publication != "tidemark_shop" || list[2].Slot != "tidemark_shop" || list[3].Lake != "s3://bucket/shop" || list[4].Namespace != "default" {
			t.Errorf("told %+v", list)
		}
		for _, n := range list[notes:] {
			if n.What != "note" || n.Fix == "" || !strings.Contains(n.Text, n.Fix) {
				t.Errorf("told %+v", n)
			}
		}
	}
	out.Reset()
	s := newTestSetup(t, &fakePostgres{}, lake.NewMemory(), attrs, &out)
	s.steps.asJSON = true
	if err := s.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list := toldSteps(t, out.String()); list[2].LSN != 0x100 || list[3].LSN != 0x100 {
		t.Errorf("slot and lake are told as %+v", list[2:4])
	}
}

func TestWhatSetupHasTakenBackIsTold(t *testing.T) {
	var out bytes.Buffer
	s := newTestSetup(t, &fakePostgres{}, refusingStore{lake.NewMemory()}, &fakeAttributes{}, &out)
	s.steps.asJSON = true
	if err := s.run(t.Context()); err == nil {
		t.Fatal("no error")
	}
	if got, want := inShort(toldSteps(t, out.String())), []string{"Postgres", "publication made", "slot made", "slot dropped", "publication dropped"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

func TestARefusalOfSetupIsToldAsJSONToo(t *testing.T) {
	findings := []finding{passed(aboutLake, "good"), {Level: levelWarning, About: aboutPostgres, What: "so so"},
		{Level: levelError, About: aboutPostgres, What: "wal_level is\nreplica", Fix: "ALTER SYSTEM"}}
	for _, asJSON := range []bool{false, true} {
		var out bytes.Buffer
		err := steps{&out, asJSON}.refusal(findings)
		var se *statusError
		if !errors.As(err, &se) || se.status != statusRefused {
			t.Errorf("refused with %v", err)
		}
		list := toldSteps(t, out.String())
		if !asJSON && len(list) > 0 || asJSON && (len(list) != 1 || list[0] != step{What: "Postgres", Outcome: "refused", Text: "wal_level is; replica", Fix: "ALTER SYSTEM"}) {
			t.Errorf("with JSON %v: told %+v", asJSON, list)
		}
	}
	got := run(t, []string{"TIDEMARK_PIPELINE=shop", "TIDEMARK_POSTGRES_URL=postgres://127.0.0.1:1/shop", "TIDEMARK_LAKE_URL=file://" + t.TempDir(), "TEMPORAL_ADDRESS=127.0.0.1:1"}, "setup", "--json")
	if list := toldSteps(t, got.out); got.status != statusRefused || len(list) != 2 || list[0].What != "Postgres" || list[1].What != "Temporal" || list[1].Outcome != "refused" {
		t.Errorf("status %d, told %+v", got.status, list)
	}
	has(t, "stderr", got.err, "for 2 reasons")
}

func TestTeardownTellsItsStepsAsJSON(t *testing.T) {
	pg := &fakePostgres{slot: &replication.SlotInfo{Name: "tidemark_shop"}, publication: true}
	l := lake.New("s3://bucket/shop", lake.NewMemory())
	if err := l.CreateIdentity(t.Context(), lake.Identity{Pipeline: "shop", SystemID: "71", Timeline: 1, StartLSN: 1, CreatedPublication: true}); err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{{"slot dropped", "publication dropped"}, {"pipeline nothing"}} {
		var out bytes.Buffer
		td := &teardown{cfg: testConfig(t), steps: steps{&out, true}, postgres: pg, lake: l}
		err := td.look(t.Context())
		if err == nil && !td.nothing() {
			err = td.run(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		list := toldSteps(t, out.String())
		if got := inShort(list); !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
		if len(want) == 2 && (list[0].Slot != "tidemark_shop" || list[1].Publication != "tidemark_shop") {
			t.Errorf("told %+v", list)
		}
	}
	var out bytes.Buffer
	td := &teardown{cfg: testConfig(t), steps: steps{&out, true}, postgres: &fakePostgres{}, slot: &replication.SlotInfo{Name: "gone"}}
	if err := td.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list := toldSteps(t, out.String()); fmt.Sprint(inShort(list)) != "[slot gone]" {
		t.Errorf("told %+v", list)
	}
}

// settledPostgres is a server with one slot, for settle.
type settledPostgres struct{ slot replication.SlotInfo }

func (p settledPostgres) Slot(context.Context) (replication.SlotInfo, error) { return p.slot, nil }
func (p settledPostgres) FlushLSN(context.Context) (change.LSN, error)       { return 0x1000, nil }

func (p settledPostgres) CreateSlot(context.Context, string, bool) (change.LSN, error) {
	return 0, errors.New("not to be made")
}

func (p settledPostgres) DropSlot(context.Context, string) (bool, error) {
	return false, errors.New("not to be dropped")
}

// noSegments is a Temporal without any.
type noSegments struct{}

func (noSegments) Unfinished(context.Context, string, change.Position) ([]segment.Record, error) {
	return nil, nil
}

func (noSegments) GiveUp(context.Context, segment.Record, string) (bool, error) {
	return false, errors.New("not to be given up")
}

func TestResolveTellsItsStepsAsJSON(t *testing.T) {
	l := lake.New("s3://bucket/shop", lake.NewMemory())
	if err := l.CreateIdentity(t.Context(), lake.Identity{Pipeline: "shop", SystemID: "71", Timeline: 1, StartLSN: 0x100, CreatedAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	// Somebody has advanced the slot.
	pg := settledPostgres{replication.SlotInfo{Name: "tidemark_shop", ConfirmedFlush: 0x200}}
	for _, tc := range []struct {
		dryRun bool
		want   []string
	}{
		{true, []string{"found", "to do", "to do"}},
		{false, []string{"found", "to do", "to do", "done", "done", "pipeline settled"}},
		{false, []string{"pipeline nothing"}},
	} {
		c, err := settle.Look(t.Context(), settle.Config{Pipeline: "shop", Slot: "tidemark_shop", Writer: "test",
			System: replication.System{SystemID: "71", Timeline: 1}, History: replication.History{Current: 1}},
			settle.Deps{Lake: l, Postgres: pg, Segments: noSegments{}})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		s := &settling{verb: "resolve", dryRun: tc.dryRun, yes: true, cfg: testConfig(t), steps: steps{&out, true}}
		if err := s.decide(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if got := inShort(toldSteps(t, out.String())); !slices.Equal(got, tc.want) {
			t.Errorf("told %q, want %q", got, tc.want)
		}
	}
}
