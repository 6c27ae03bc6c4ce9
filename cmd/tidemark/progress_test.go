package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// testConsole is one on a terminal of 40 columns, or on none. What is written to
// the result stands above the line of progress.
func testConsole(terminal bool) (system, *bytes.Buffer) {
	var out bytes.Buffer
	c := &console{stderr: &out, terminal: terminal, columns: func() int { return 40 }}
	return system{console: c, stderr: c.above(&out)}, &out
}

// taken is what has been written since it was taken last.
func taken(sys system, out *bytes.Buffer) string {
	sys.console.mu.Lock()
	defer sys.console.mu.Unlock()
	defer out.Reset()
	return out.String()
}

func TestProgressIsSaidOnlyOfWhatTakesLong(t *testing.T) {
	for name, tc := range map[string]struct {
		takes time.Duration
		want  []string
	}{
		"not yet":       {1900 * time.Millisecond, nil},
		"long":          {3 * time.Second, []string{"tidemark: reading 1 (2s)"}},
		"longer":        {11900 * time.Millisecond, []string{"tidemark: reading 1 (2s)"}},
		"much longer":   {13 * time.Second, []string{"tidemark: reading 1 (2s)", "tidemark: reading 1 (12s)"}},
		"half a minute": {31 * time.Second, []string{"tidemark: reading 1 (2s)", "tidemark: reading 1 (12s)", "tidemark: reading 1 (22s)"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sys, out := testConsole(false)
				p := sys.progress()
				p.doing("reading %d", 1)
				time.Sleep(tc.takes)
				p.end()
				if got := out.String(); got != strings.Join(append(tc.want, ""), "\n") {
					t.Errorf("said %q", got)
				}
			})
		})
	}
}

func TestProgressOnATerminalIsOneLineBelowAllElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sys, out := testConsole(true)
		since := func() string { return taken(sys, out) }
		p := sys.progress()
		p.doing("reading %d", 1)
		time.Sleep(2500 * time.Millisecond)
		if got, want := since(), "\rtidemark: reading 1 (2s)"+clearLine; got != want {
			t.Errorf("first %q, want %q", got, want)
		}
		p.doing("reading %d objects of a lake that is long", 2000)
		time.Sleep(2 * time.Second)
		if got, want := since(), "\rtidemark: reading 2000 objects of a lake"[:40]+clearLine; got != want {
			t.Errorf("then %q, want %q, as wide as the terminal", got, want)
		}
		sys.stderr.Write([]byte("a line\n"))
		sys.stderr.Write([]byte("another\n"))
		if got, want := since(), "\r"+clearLine+"a line\nanother\n"; got != want {
			t.Errorf("lines in between are %q, want %q", got, want)
		}
		time.Sleep(2 * time.Second)
		if got := since(); !strings.HasPrefix(got, "\rtidemark: reading 2000") {
			t.Errorf("below them stands %q", got)
		}
		p.end()
		if got, want := since(), "\r"+clearLine; got != want {
			t.Errorf("in the end %q, want %q", got, want)
		}
	})
}

func TestNoProgressIsSaidWhileAPersonIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sys, out := testConsole(true)
		p := sys.progress()
		defer p.end()
		p.doing("looking")
		time.Sleep(3 * time.Second)
		p.idle()
		if got, want := taken(sys, out), "\rtidemark: looking (2s)"+clearLine+"\r"+clearLine; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		time.Sleep(time.Minute)
		p.doing("acting")
		time.Sleep(1900 * time.Millisecond)
		if got := taken(sys, out); got != "" {
			t.Errorf("said %q", got)
		}
		time.Sleep(2 * time.Second)
		if got, want := taken(sys, out), "\rtidemark: acting (3s)"+clearLine; got != want {
			t.Errorf("after the answer %q, want %q: the time of the person is none of the verb's", got, want)
		}
	})
}
