package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/config"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// fakePostgres has a slot and a publication, or not, and notes what was done.
type fakePostgres struct {
	slot        *replication.SlotInfo
	publication bool
	calls       []string
	fail        map[string]error
}

func (f *fakePostgres) did(call string) error {
	f.calls = append(f.calls, call)
	return f.fail[call]
}

func (f *fakePostgres) Inspect(context.Context) (replication.Facts, error) {
	return replication.Facts{
		SystemID: "71", Slot: f.slot, SlotName: "tidemark_shop", Slots: 1, MaxSlots: 10,
		Publications: []replication.PublicationInfo{{Name: "tidemark_shop", Exists: f.publication}},
	}, f.fail["inspect"]
}

func (f *fakePostgres) CreatePublication(context.Context, string, replication.Published) (bool, error) {
	if f.publication {
		return false, f.fail["check publication"]
	}
	f.publication = true
	return true, f.did("create publication")
}

func (f *fakePostgres) DropPublication(context.Context, string) (bool, error) {
	had := f.publication
	f.publication = false
	return had, f.did("drop publication")
}

func (f *fakePostgres) CreateSlot(_ context.Context, name string, _ bool) (change.LSN, error) {
	err := f.did("create slot")
	if err == nil {
		f.slot = &replication.SlotInfo{Name: name, ConfirmedFlush: 0x100}
	}
	return 0x100, err
}

func (f *fakePostgres) DropSlot(context.Context, string) (bool, error) {
	had := f.slot != nil
	f.slot = nil
	return had, f.did("drop slot")
}

type fakeAttributes struct {
	missing []string
	err     error
}

func (f *fakeAttributes) Missing(context.Context) ([]string, error) { return f.missing, nil }

func (f *fakeAttributes) Setup(context.Context) ([]string, error) {
	made := f.missing
	f.missing = nil
	return made, f.err
}

// refusingStore takes no object.
type refusingStore struct{ *lake.Memory }

func (refusingStore) Put(context.Context, string, []byte, lake.Condition) (string, error) {
	return "", errors.New("access denied")
}

func testConfig(t *testing.T) *config.Config {
	t.Helper()
	c, err := config.Load(config.Sources{Environ: []string{"TIDEMARK_PIPELINE=shop", "TIDEMARK_LAKE_URL=s3://bucket/shop", "TIDEMARK_OPS_LISTEN=off"}}, config.NeedPipeline)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newTestSetup is a setup that has looked at fakes.
func newTestSetup(t *testing.T, pg *fakePostgres, store lake.Store, attrs *fakeAttributes, out *bytes.Buffer) *setup {
	t.Helper()
	c := testConfig(t)
	s := &setup{
		cfg: c, steps: steps{out: out}, logger: slog.New(slog.DiscardHandler), postgres: pg, attributes: attrs, namespace: "default",
		system: replication.System{SystemID: "71", Timeline: 1, Database: "shop", ServerVersion: 180004},
		lake:   lake.New("s3://bucket/shop", store), found: newSituation(c), missing: attrs.missing,
	}
	s.found.systemID = "71"
	s.found.facts, _ = pg.Inspect(t.Context())
	if id, err := s.lake.ReadIdentity(t.Context()); err == nil {
		s.found.identity = &id
	}
	return s
}

func TestSetupMakesWhatIsMissingAndTwiceChangesNothing(t *testing.T) {
	pg, attrs, store := &fakePostgres{}, &fakeAttributes{missing: []string{"TidemarkDay"}}, lake.NewMemory()
	var out bytes.Buffer
	s := newTestSetup(t, pg, store, attrs, &out)
	if problems := s.found.findings(); len(problems) > 0 {
		t.Fatal(problems)
	}
	if err := s.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"create publication", "create slot"}; !slices.Equal(pg.calls, want) {
		t.Errorf("did %q, want %q", pg.calls, want)
	}
	id, err := s.lake.ReadIdentity(t.Context())
	if err != nil || id.Pipeline != "shop" || id.SystemID != "71" || id.StartLSN != 0x100 || !id.CreatedPublication || id.Slot != "tidemark_shop" {
		t.Errorf("identity is %+v (%v)", id, err)
	}
	has(t, "output", out.String(), "publication", "made, for all tables", "slot", "made, starts at 0/100", "founded", "registered in namespace default: TidemarkDay")

	pg.calls = nil
	out.Reset()
	again := newTestSetup(t, pg, store, attrs, &out)
	if problems := again.found.findings(); len(problems) > 0 {
		t.Fatal(problems)
	}
	if err := again.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(pg.calls) > 0 {
		t.Errorf("the second run did %q", pg.calls)
	}
	has(t, "output", out.String(), "exists", "exists", "was set up before, from 0/100 on", "has the search attributes")
}

func TestDryRunChangesNothing(t *testing.T) {
	pg, attrs, store := &fakePostgres{}, &fakeAttributes{missing: []string{"TidemarkDay"}}, lake.NewMemory()
	var out bytes.Buffer
	s := newTestSetup(t, pg, store, attrs, &out)
	s.dryRun = true
	if err := s.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.lake.ReadIdentity(t.Context()); len(pg.calls) > 0 || len(attrs.missing) == 0 || !errors.Is(err, lake.ErrNotFound) {
		t.Errorf("did %q, attributes left %q, identity: %v", pg.calls, attrs.missing, err)
	}
	has(t, "output", out.String(), "would be made", "would be made", "would be founded", "would be registered")
}

func TestSetupTakesBackWhatItMadeWhenTheLakeCannotBeFounded(t *testing.T) {
	for name, tc := range map[string]struct {
		fail        map[string]error
		store       lake.Store
		publication bool // there is one before
		want        []string
	}{
		"no slot":                     {map[string]error{"create slot": errors.New("none free")}, lake.NewMemory(), false, []string{"create publication", "create slot", "drop publication"}},
		"no identity":                 {nil, refusingStore{lake.NewMemory()}, false, []string{"create publication", "create slot", "drop slot", "drop publication"}},
		"a publication of the user's": {nil, refusingStore{lake.NewMemory()}, true, []string{"create slot", "drop slot"}},
	} {
		t.Run(name, func(t *testing.T) {
			pg := &fakePostgres{fail: tc.fail, publication: tc.publication}
			var out bytes.Buffer
			if err := newTestSetup(t, pg, tc.store, &fakeAttributes{}, &out).run(t.Context()); err == nil {
				t.Error("no error")
			}
			if !slices.Equal(pg.calls, tc.want) {
				t.Errorf("did %q, want %q", pg.calls, tc.want)
			}
		})
	}
}

func TestAPipelineThatIsSetUpIsNotTakenBack(t *testing.T) {
	pg := &fakePostgres{}
	var out bytes.Buffer
	s := newTestSetup(t, pg, lake.NewMemory(), &fakeAttributes{err: errors.New("not allowed")}, &out)
	if err := s.run(t.Context()); err == nil || !strings.Contains(err.Error(), "not allowed") {
		t.Errorf("got %v", err)
	}
	if pg.slot == nil || !pg.publication {
		t.Error("slot or publication was dropped, though the lake names them")
	}
}

func TestAPublicationOfOtherTablesIsRefused(t *testing.T) {
	pg := &fakePostgres{publication: true, fail: map[string]error{"check publication": &replication.Error{Kind: replication.ErrPublicationDiffers, Text: "lacks the table public.x"}}}
	var out bytes.Buffer
	err := newTestSetup(t, pg, lake.NewMemory(), &fakeAttributes{}, &out).run(t.Context())
	var se *statusError
	if !errors.As(err, &se) || se.status != statusRefused || len(pg.calls) > 0 {
		t.Errorf("got %v after %q", err, pg.calls)
	}
}

func TestHalfOfASetupIsRefusedWithAWayOut(t *testing.T) {
	slot := &replication.SlotInfo{Name: "tidemark_shop"}
	ours := &lake.Identity{Pipeline: "shop", SystemID: "71", Slot: "tidemark_shop"}
	there := []replication.PublicationInfo{{Name: "tidemark_shop", Exists: true}}
	gone := []replication.PublicationInfo{{Name: "tidemark_shop"}}
	for name, tc := range map[string]struct {
		slot         *replication.SlotInfo
		identity     *lake.Identity
		publications []replication.PublicationInfo
		want         string
	}{
		"nothing is there":                     {nil, nil, gone, ""},
		"a publication is there":               {nil, nil, there, ""},
		"everything is there":                  {slot, ours, there, ""},
		"a slot without a lake":                {slot, nil, there, "was never set up"},
		"a lake without its slot":              {nil, ours, there, "hide that gap"},
		"a lake without its publication":       {slot, ours, gone, "making it again does not help"},
		"the lake of another pipeline":         {slot, &lake.Identity{Pipeline: "other", SystemID: "71"}, there, `the lake of pipeline "other"`},
		"the lake of another database":         {slot, &lake.Identity{Pipeline: "shop", SystemID: "99"}, there, "system identifier 99"},
		"the lake of another slot":             {slot, &lake.Identity{Pipeline: "shop", SystemID: "71", Slot: "old"}, there, `set postgres.slot to "old"`},
		"another pipeline's lake and no slot":  {nil, &lake.Identity{Pipeline: "other", SystemID: "71"}, gone, `the lake of pipeline "other"`},
		"another database's lake and no slot":  {nil, &lake.Identity{Pipeline: "shop", SystemID: "99"}, gone, "system identifier 99"},
		"an identity that names no slot, good": {slot, &lake.Identity{Pipeline: "shop", SystemID: "71"}, there, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSituation(testConfig(t))
			s.systemID, s.identity = "71", tc.identity
			s.facts.Slot, s.facts.Publications = tc.slot, tc.publications
			got := texts(s.findings())
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTeardownDropsOnlyWhatSetupMade(t *testing.T) {
	for name, tc := range map[string]struct {
		identity *lake.Identity
		slot     *replication.SlotInfo
		want     []string
		refused  string
	}{
		"publication made by setup": {&lake.Identity{Pipeline: "shop", SystemID: "71", Timeline: 1, StartLSN: 1, CreatedPublication: true}, &replication.SlotInfo{Name: "tidemark_shop"}, []string{"drop slot", "drop publication"}, ""},
		"publication of the user's": {&lake.Identity{Pipeline: "shop", SystemID: "71", Timeline: 1, StartLSN: 1}, &replication.SlotInfo{Name: "tidemark_shop"}, []string{"drop slot"}, ""},
		"no lake":                   {nil, &replication.SlotInfo{Name: "tidemark_shop"}, []string{"drop slot"}, ""},
		"nothing":                   {nil, nil, nil, ""},
		"another pipeline's lake":   {&lake.Identity{Pipeline: "other", SystemID: "71", Timeline: 1, StartLSN: 1}, &replication.SlotInfo{Name: "tidemark_shop"}, nil, "another pipeline"},
		"a slot that is read":       {nil, &replication.SlotInfo{Name: "tidemark_shop", Active: true, ActivePID: 7}, nil, "stop the streamer first"},
	} {
		t.Run(name, func(t *testing.T) {
			pg := &fakePostgres{slot: tc.slot, publication: true}
			l := lake.New("s3://bucket/shop", lake.NewMemory())
			if tc.identity != nil {
				if err := l.CreateIdentity(t.Context(), *tc.identity); err != nil {
					t.Fatal(err)
				}
			}
			var out bytes.Buffer
			td := &teardown{cfg: testConfig(t), steps: steps{out: &out}, postgres: pg, lake: l}
			err := td.look(t.Context())
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("got %v", err)
				}
			} else if err == nil && !td.nothing() {
				err = td.run(t.Context())
			}
			if tc.refused == "" && err != nil {
				t.Error(err)
			}
			if !slices.Equal(pg.calls, tc.want) {
				t.Errorf("did %q, want %q", pg.calls, tc.want)
			}
		})
	}
}

func TestTeardownAsksFirst(t *testing.T) {
	for name, tc := range map[string]struct {
		terminal bool
		answer   string
		want     string // part of the refusal; empty if it goes on
	}{
		"nobody there": {false, "", "give --yes"},
		"the name":     {true, "shop\n", ""},
		"something":    {true, "yes\n", "nothing was done"},
		"end of input": {true, "", "nothing was done"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			td := &teardown{cfg: testConfig(t), steps: steps{out: &out}, slot: &replication.SlotInfo{Name: "tidemark_shop", LagBytes: 3 << 20}, lake: lake.New("s3://bucket/shop", lake.NewMemory())}
			err := td.ask(system{stdin: strings.NewReader(tc.answer), terminal: func() bool { return tc.terminal }})
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if tc.terminal {
				has(t, "question", out.String(), "3.0 MiB", "Type the pipeline's name")
			}
		})
	}
}

func TestVerbsRefuseIncompleteSettingsAllAtOnce(t *testing.T) {
	for verb, want := range map[string][]string{
		"check":    {"pipeline is not set", "postgres.url is not set", "lake.url is not set"},
		"setup":    {"pipeline is not set", "postgres.url is not set", "lake.url is not set"},
		"run":      {"pipeline is not set", "postgres.url is not set", "lake.url is not set"},
		"streamer": {"pipeline is not set", "postgres.url is not set", "lake.url is not set"},
		"worker":   {"pipeline is not set", "lake.url is not set"},
		"status":   {"pipeline is not set", "postgres.url is not set", "lake.url is not set"},
		"teardown": {"pipeline is not set", "postgres.url is not set", "lake.url is not set"},
	} {
		t.Run(verb, func(t *testing.T) {
			got := run(t, nil, verb)
			if got.status != statusRefused || got.out != "" {
				t.Errorf("status %d, stdout %q", got.status, got.out)
			}
			has(t, "stderr", got.err, append([]string{fmt.Sprintf("for %d reasons", len(want))}, want...)...)
		})
	}
	if got := run(t, nil, "verify"); got.status != statusRefused {
		t.Errorf("verify: status %d", got.status)
	}
}
