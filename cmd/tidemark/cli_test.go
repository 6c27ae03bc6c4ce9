package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// outcome is what a run of the command line left behind.
type outcome struct {
	status int
	out    string
	err    string
}

// run runs the command line in this process, with nothing in the environment
// but what is given and a TEMPORAL_CONFIG_FILE that is not there.
func run(t *testing.T, environ []string, args ...string) outcome {
	t.Helper()
	return runUntil(t.Context(), t, environ, args...)
}

// runUntil is run with a context that may end.
func runUntil(ctx context.Context, t *testing.T, environ []string, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	status := execute(ctx, args, system{
		environ:  append([]string{"TEMPORAL_CONFIG_FILE=" + filepath.Join(t.TempDir(), "none.toml")}, environ...),
		stdin:    strings.NewReader(""),
		stdout:   &out,
		stderr:   &errs,
		terminal: func() bool { return false },
	})
	return outcome{status, out.String(), errs.String()}
}

// has checks that text has each part, in order.
func has(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, p := range parts {
		_, after, found := strings.Cut(rest, p)
		if !found {
			t.Errorf("%s has no %q, or out of order:\n%s", what, p, text)
			return
		}
		rest = after
	}
}

func TestHelpNamesVerbsAndExitStatuses(t *testing.T) {
	got := run(t, nil, "--help")
	if got.status != statusDone || got.err != "" {
		t.Errorf("status %d, stderr %q", got.status, got.err)
	}
	has(t, "help", got.out, "TIDEMARK_CONFIG", "Exit status: 0 done; 1 failed", "2 refused")
	for _, verb := range []string{"config", "version"} {
		has(t, "help", got.out, "\n  "+verb)
	}
}

func TestConfigHelpListsEverySetting(t *testing.T) {
	got := run(t, nil, "config", "--help")
	has(t, "help", got.out, "--config", "--pipeline", "--postgres-url", "--lake-conditional-writes", "--data-insecure", "--log-format")
}

func TestWrongUsageIsRefusedWithStatusTwo(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"unknown verb":     {[]string{"fly"}, `unknown command "fly"`},
		"unknown flag":     {[]string{"config", "--lake-ur=x"}, "unknown flag: --lake-ur"},
		"needless word":    {[]string{"version", "now"}, `unknown command "now"`},
		"flag without end": {[]string{"config", "--lake-url"}, "flag needs an argument"},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, nil, tc.args...)
			if got.status != statusRefused || got.out != "" {
				t.Errorf("status %d, stdout %q", got.status, got.out)
			}
			has(t, "stderr", got.err, "tidemark: ", tc.want, "see tidemark --help")
			if strings.Count(got.err, "\n") != 1 {
				t.Errorf("not one line: %q", got.err)
			}
		})
	}
}

func TestFlagsThatDoNotGoTogetherAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"an end of no upgrade":    {[]string{"resolve", "--old-end=0/1"}, "--old-end goes with --upgraded only"},
		"an end that is none":     {[]string{"resolve", "--upgraded", "--old-end=1234"}, "pg_controldata"},
		"setup that does not ask": {[]string{"setup", "--yes"}, "--yes goes with --recreate-slot only"},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, nil, tc.args...)
			if got.status != statusRefused || got.out != "" {
				t.Errorf("status %d, stdout %q", got.status, got.out)
			}
			has(t, "stderr", got.err, "tidemark: ", tc.want)
		})
	}
}

func TestASignalWhileAVerbLooksAroundIsNoFindingOfIt(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("received interrupt"))
	environ := []string{"TIDEMARK_PIPELINE=shop", "TIDEMARK_POSTGRES_URL=postgres://127.0.0.1:1/shop", "TIDEMARK_LAKE_URL=file://" + t.TempDir(), "TEMPORAL_ADDRESS=127.0.0.1:1"}
	for _, args := range [][]string{{"check"}, {"setup"}, {"resolve", "--yes"}} {
		got := runUntil(ctx, t, environ, append(args, "--json")...)
		if got.status != statusFailed || got.out != "" || got.err != "tidemark: received interrupt\n" {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

func TestConfigPrintsValuesAndOrigins(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("tidemark.yaml", []byte("pipeline: orders\nlake:\n  url: s3://bucket/p\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := run(t, []string{
		"TIDEMARK_POSTGRES_URL=postgres://me:hunter2@db/shop", "TEMPORAL_ADDRESS=temporal:7233",
	}, "config", "--segment-max-rows=7")
	if got.status != statusDone || got.err != "" {
		t.Errorf("status %d, stderr %q", got.status, got.err)
	}
	if strings.Contains(got.out, "hunter2") {
		t.Error("the password is shown")
	}
	for _, line := range []string{
		`pipeline +orders +tidemark.yaml:1`,
		`postgres.url +postgres://me:xxxxx@db/shop +TIDEMARK_POSTGRES_URL`,
		`postgres.slot +tidemark_orders +default`,
		`lake.url +s3://bucket/p +tidemark.yaml:3`,
		`temporal.address +temporal:7233 +TEMPORAL_ADDRESS`,
		`temporal.namespace +default +default of the Temporal SDK`,
		`segment.max_rows +7 +--segment-max-rows`,
	} {
		if !regexp.MustCompile(`(?m)^` + line + `$`).MatchString(got.out) {
			t.Errorf("no line %s in:\n%s", line, got.out)
		}
	}
}

func TestAConfigurationFileWithAPasswordForEveryoneIsWarnedOf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tidemark.yaml")
	if err := os.WriteFile(file, []byte("postgres:\n  url: postgres://me:hunter2@db/shop\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	got := run(t, nil, "config", "--config", file)
	if got.status != statusDone || strings.Contains(got.out+got.err, "hunter2") {
		t.Errorf("%+v", got)
	}
	has(t, "stderr", got.err, "warning: ", file+" has a password (postgres.url)", "chmod 600 "+file)
}

func TestConfigAsJSON(t *testing.T) {
	got := run(t, []string{"TIDEMARK_PIPELINE=orders"}, "config", "--json")
	var settings []struct{ Key, Value, Origin string }
	if err := json.Unmarshal([]byte(got.out), &settings); err != nil {
		t.Fatalf("%v in %s", err, got.out)
	}
	if settings[0].Key != "pipeline" || settings[0].Value != "orders" || settings[0].Origin != "TIDEMARK_PIPELINE" {
		t.Errorf("first setting is %+v", settings[0])
	}
}

func TestConfigListsEveryProblemAndStillPrints(t *testing.T) {
	got := run(t, []string{"TIDEMARK_LAKE_URRL=x", "TIDEMARK_LOG_LEVEL=loud"}, "config", "--postgres-url=postgres://me:hunter2@db/shop")
	if got.status != statusRefused {
		t.Errorf("status %d", got.status)
	}
	has(t, "stderr", got.err, "for 3 reasons", "did you mean TIDEMARK_LAKE_URL?", "--postgres-url has a password", "log.level (TIDEMARK_LOG_LEVEL)")
	has(t, "stdout", got.out, "segment.max_rows")
	if strings.Contains(got.err+got.out, "hunter2") {
		t.Error("the password is shown")
	}
}

func TestAConfigurationFileThatIsNamedMustBeThere(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.yaml")
	for name, tc := range map[string]struct{ environ, args []string }{
		"by flag":     {nil, []string{"config", "--config", missing}},
		"by variable": {[]string{"TIDEMARK_CONFIG=" + missing}, []string{"config"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, tc.environ, tc.args...)
			if got.status != statusRefused {
				t.Errorf("status %d", got.status)
			}
			has(t, "stderr", got.err, missing, "cannot be read: no such file")
		})
	}
}

func TestATemporalProfileThatIsNotThereIsRefused(t *testing.T) {
	got := run(t, nil, "config", "--temporal-profile=prod")
	if got.status != statusRefused {
		t.Errorf("status %d", got.status)
	}
	has(t, "stderr", got.err, "Temporal's own configuration", "prod")
}

func TestVersion(t *testing.T) {
	got := run(t, nil, "version")
	if got.status != statusDone {
		t.Errorf("status %d", got.status)
	}
	has(t, "stdout", got.out, "tidemark ", "go1.")
	got = run(t, nil, "version", "--json")
	var b build
	if err := json.Unmarshal([]byte(got.out), &b); err != nil || b.Version == "" || b.Go == "" {
		t.Errorf("%s: %v", got.out, err)
	}
}

func TestShellsCompleteVerbsFlagsAndValues(t *testing.T) {
	for _, tc := range []struct{ args, want []string }{
		{[]string{"st"}, []string{"status", "streamer"}},
		{[]string{"run", "--lake-ur"}, []string{"--lake-url"}},
		{[]string{"run", "--log-level", ""}, []string{"debug", "info", "warn", "error"}},
		{[]string{"worker", "--worker-toast="}, []string{"unchanged", "lookup"}},
	} {
		got := run(t, nil, append([]string{"__complete"}, tc.args...)...)
		for _, want := range tc.want {
			if got.status != statusDone || !regexp.MustCompile(`(?m)^`+want+`\b`).MatchString(got.out) {
				t.Errorf("%q is not completed to %s: %+v", tc.args, want, got)
			}
		}
	}
	got := run(t, nil, "completion", "bash")
	if got.status != statusDone {
		t.Errorf("status %d", got.status)
	}
	has(t, "script", got.out, "# bash completion V2 for tidemark")
}
