package login

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shell is a command that runs a script.
func shell(script string) Password {
	return FromCommand([]string{"/bin/sh", "-c", script, "argument-hunter2"}, []string{"PATH=/bin:/usr/bin", "FROM=the-environment"})
}

func TestCommandGivesWhatItWrites(t *testing.T) {
	for script, want := range map[string]string{
		`echo secret`:                "secret",
		`printf 'with spaces '`:      "with spaces ",
		`printf 'windows\r\n'`:       "windows",
		`echo "$FROM"`:               "the-environment",
		`echo noise >&2; echo quiet`: "quiet",
		`echo "${HOME-nothing}"`:     "nothing",
	} {
		if got, err := shell(script)(t.Context()); err != nil || got != want {
			t.Errorf("%s gives %q, %v; want %q", script, got, err, want)
		}
	}
}

func TestCommandIsRunForEachConnection(t *testing.T) {
	count := filepath.Join(t.TempDir(), "count")
	p := shell("echo x >>" + count + "; wc -l <" + count)
	for _, want := range []string{"1", "2", "3"} {
		if got, err := p(t.Context()); err != nil || strings.TrimSpace(got) != want {
			t.Errorf("got %q, %v; want %s", got, err, want)
		}
	}
}

// An error has the command's name and how it ended, and nothing that it was
// given or has written.
func TestErrorsOfACommandHaveNothingOfItsOutput(t *testing.T) {
	for script, want := range map[string]string{
		`echo hunter2; echo hunter2 >&2; exit 7`:       "sh (postgres.password_command) ended with exit status 7",
		`echo hunter2; kill -9 $$`:                     "sh (postgres.password_command) ended with signal: killed",
		`echo`:                                         "it gives an empty password",
		`echo hunter2; echo hunter2`:                   "more than one line",
		`while :; do echo hunter2hunter2hunter2; done`: "writes more than 16384 bytes",
		`printf 'hunter2\0'`:                           "more than one line",
	} {
		got, err := shell(script)(t.Context())
		if err == nil || got != "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v; want %q", script, got, err, want)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error tells what is secret: %v", script, err)
		}
	}
	_, err := FromCommand([]string{"/nowhere/hunter", "hunter2"}, nil)(t.Context())
	if err == nil || !strings.Contains(err.Error(), "hunter (postgres.password_command) cannot be run") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a command that is not there: %v", err)
	}
}

func TestCommandEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	// The child of the shell keeps the output open.
	if _, err := shell(`sleep 60 & wait`)(ctx); err == nil {
		t.Error("no error")
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("it has taken %s", took)
	}
}

func TestFileIsReadForEachConnection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "password")
	p := FromFile(path)
	if _, err := p(t.Context()); err == nil || !strings.Contains(err.Error(), "postgres.password_file") {
		t.Errorf("without the file: %v", err)
	}
	for text, want := range map[string]string{"one\n": "one", "two": "two", " three \n": " three "} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := p(t.Context()); err != nil || got != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	for text, want := range map[string]string{"\n": "empty password", "hunter2\nhunter2\n": "more than one line", strings.Repeat("hunter2", 4000): "more than 16384 bytes"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := p(t.Context()); err == nil || got != "" || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
}
