package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/lake"
)

func TestPausingAndResumingAreIdempotent(t *testing.T) {
	dir := t.TempDir()
	environ := []string{"TIDEMARK_PIPELINE=shop", "TIDEMARK_LAKE_URL=file://" + dir}
	l, err := lake.Open(t.Context(), lake.Config{URL: "file://" + dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"pause", "resume"} {
		got := run(t, environ, verb)
		if got.status != statusRefused || got.out != "" {
			t.Errorf("%s before setup: %+v", verb, got)
		}
		has(t, "stderr", got.err, "was not set up")
	}
	if err := l.CreateIdentity(t.Context(), lake.Identity{Pipeline: "shop", SystemID: "71", Timeline: 1, StartLSN: 0x100}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		args []string
		want []string
	}{
		{[]string{"resume"}, []string{"It is not paused: nothing to do."}},
		{[]string{"pause", "--by", "ann", "--reason", "the bucket moves"}, []string{"The pipeline is paused by ann since ", "because: the bucket moves", "Postgres keeps its WAL"}},
		{[]string{"pause"}, []string{"It is paused already: paused by ann since "}},
		{[]string{"resume"}, []string{"goes on", "It was paused by ann"}},
		{[]string{"resume"}, []string{"nothing to do"}},
		{[]string{"pause"}, []string{"The pipeline is paused by ", "@", "no reason was given"}},
	} {
		got := run(t, environ, step.args...)
		if got.status != statusDone || got.err != "" {
			t.Errorf("%q: %+v", step.args, got)
		}
		has(t, "stdout", got.out, step.want...)
	}
	if _, err := os.Stat(filepath.Join(dir, "_tidemark", "paused.json")); err != nil {
		t.Error(err)
	}
	// A pipeline that has gone on with another cluster is still the same.
	if _, err := l.RecordSuccession(t.Context(), lake.Succession{SystemID: "72", TimelineOffset: 1}); err != nil {
		t.Fatal(err)
	}
	if got := run(t, environ, "resume"); got.status != statusDone {
		t.Errorf("resume after a succession: %+v", got)
	}
}

func TestPauseAndResumeAsJSON(t *testing.T) {
	dir := t.TempDir()
	l, err := lake.Open(t.Context(), lake.Config{URL: "file://" + dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.CreateIdentity(t.Context(), lake.Identity{Pipeline: "shop", SystemID: "71", Timeline: 1, StartLSN: 0x100}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		args            []string
		paused, changed bool
		by, reason      string
	}{
		{[]string{"resume"}, false, false, "", ""},
		{[]string{"pause", "--by", "ann", "--reason", "the bucket moves"}, true, true, "ann", "the bucket moves"},
		{[]string{"pause", "--by", "bob"}, true, false, "ann", "the bucket moves"},
		{[]string{"resume"}, false, true, "ann", "the bucket moves"},
	} {
		got := run(t, []string{"TIDEMARK_PIPELINE=shop", "TIDEMARK_LAKE_URL=file://" + dir}, append(step.args, "--json")...)
		var r struct {
			Paused, Changed bool
			Pause           *lake.Pause
		}
		if err := json.Unmarshal([]byte(got.out), &r); err != nil || got.status != statusDone || got.err != "" {
			t.Fatalf("%q: %v, %+v", step.args, err, got)
		}
		var pause lake.Pause
		if r.Pause != nil {
			pause = *r.Pause
		}
		if r.Paused != step.paused || r.Changed != step.changed || pause.By != step.by || pause.Reason != step.reason || (r.Pause == nil) != pause.Since.IsZero() {
			t.Errorf("%q: %s", step.args, got.out)
		}
	}
}

func TestAPauseOfAnotherPipelineIsRefused(t *testing.T) {
	dir := t.TempDir()
	l, err := lake.Open(t.Context(), lake.Config{URL: "file://" + dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.CreateIdentity(t.Context(), lake.Identity{Pipeline: "other", SystemID: "71", Timeline: 1, StartLSN: 0x100}); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"pause"}, {"resume"}} {
		got := run(t, []string{"TIDEMARK_PIPELINE=shop", "TIDEMARK_LAKE_URL=file://" + dir}, args...)
		if got.status != statusRefused {
			t.Errorf("%q: %+v", args, got)
		}
		has(t, "stderr", got.err, `the lake of pipeline "other"`)
	}
	got := run(t, []string{"TIDEMARK_PIPELINE=other", "TIDEMARK_LAKE_URL=file://" + dir}, "pause", "--reason", "two\nlines")
	if got.status != statusRefused {
		t.Errorf("a reason of two lines: %+v", got)
	}
	if p, err := l.ReadPause(t.Context()); p != nil || err != nil {
		t.Errorf("it is paused: %v, %v", p, err)
	}
}
