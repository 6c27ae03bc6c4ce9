package tracker_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"

	"github.com/tidemark-cdc/tidemark/internal/tracker"
	"github.com/tidemark-cdc/tidemark/internal/tracker/trackertest"
)

func TestSetupNamesWhatItRegistersAndDoesItOnce(t *testing.T) {
	tr := newTracker(t, trackertest.NewFrontend(t, &trackertest.Frontend{}), nil)
	want := []string{"TidemarkDay", "TidemarkPipeline", "TidemarkRows", "TidemarkState", "TidemarkTables"}
	if missing, err := tr.Missing(t.Context()); err != nil || !slices.Equal(missing, want) {
		t.Errorf("missing are %q, %v", missing, err)
	}
	if added, err := tr.Setup(t.Context()); err != nil || !slices.Equal(added, want) {
		t.Errorf("added %q, %v", added, err)
	}
	if added, err := tr.Setup(t.Context()); err != nil || len(added) != 0 {
		t.Errorf("added again %q, %v", added, err)
	}
}

func TestSetupWithoutPermissionGivesTheCommands(t *testing.T) {
	for _, method := range []string{"ListSearchAttributes", "AddSearchAttributes"} {
		no := &spoiler{method: method, err: serviceerror.NewPermissionDenied("no", "a test")}
		no.left.Store(1 << 40)
		tr := newTracker(t, trackertest.NewFrontend(t, &trackertest.Frontend{Before: no.spoil}), nil)
		_, err := tr.Setup(t.Context())
		if err == nil {
			t.Fatalf("%s is refused, and setup succeeds", method)
		}
		for _, want := range []string{"may not register", "temporal operator search-attribute create --namespace " + trackertest.Namespace,
			"--name TidemarkTables --type KeywordList", "--name TidemarkRows --type Int"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s is refused: %q lacks %q", method, err, want)
			}
		}
	}
}

func TestCheckNamesEachProblemAndItsWayOut(t *testing.T) {
	for name, tc := range map[string]struct {
		frontend *trackertest.Frontend
		config   func(*tracker.Config)
		setup    bool
		want     []string // one text in each problem
	}{
		"nothing is wrong":        {frontend: &trackertest.Frontend{}, setup: true},
		"no attributes":           {frontend: &trackertest.Frontend{}, want: []string{"tidemark setup"}},
		"a short retention":       {frontend: &trackertest.Frontend{Retention: 23 * time.Hour}, setup: true, want: []string{"--retention 72h"}},
		"both":                    {frontend: &trackertest.Frontend{Retention: time.Hour}, want: []string{"1h0m0s", "lacks the search attributes TidemarkDay, TidemarkPipeline"}},
		"no such namespace":       {frontend: &trackertest.Frontend{}, config: func(c *tracker.Config) { c.Namespace = "nowhere" }, want: []string{"namespace create --namespace nowhere"}},
		"attributes are not told": {frontend: refuseLists(), want: nil},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTracker(t, trackertest.NewFrontend(t, tc.frontend), tc.config)
			if tc.setup {
				if _, err := tr.Setup(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			got := tr.Check(t.Context())
			if len(got) != len(tc.want) {
				t.Fatalf("problems are %q, want %d", got, len(tc.want))
			}
			for i, want := range tc.want {
				if !strings.Contains(got[i].String(), want) {
					t.Errorf("problem %q lacks %q", got[i], want)
				}
			}
		})
	}
}

func refuseLists() *trackertest.Frontend {
	no := &spoiler{method: "ListSearchAttributes", err: serviceerror.NewPermissionDenied("no", "a test")}
	no.left.Store(1 << 40)
	return &trackertest.Frontend{Before: no.spoil}
}
