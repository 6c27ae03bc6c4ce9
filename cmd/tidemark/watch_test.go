package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// watching is a report that changes with each reading, and an end after some.
func watching(t *testing.T, out io.Writer, readings int) (watcher, context.Context) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	n := 0
	return watcher{every: time.Millisecond, out: out, read: func(context.Context) (statusReport, error) {
		if n++; n > readings {
			cancel()
		}
		r := statusReport{Pipeline: "shop", Process: &pageStatus{Verb: "streamer", Streamer: streamingStatus()},
			Slot: &replication.SlotInfo{Name: "tidemark_shop", ConfirmedFlush: 0x1FF, LagBytes: int64(n) << 10}}
		if n == 2 {
			return r, errors.New("ask Postgres:\nno route")
		}
		return r, nil
	}}, ctx
}

func TestWatchWritesALineForEachReading(t *testing.T) {
	var out bytes.Buffer
	w, ctx := watching(t, &out, 3)
	if err := w.lines(ctx); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || strings.Contains(out.String(), "\x1b") {
		t.Fatalf("not three plain lines: %q", lines)
	}
	has(t, "line", lines[0], "Z streaming, 5 changes wait, 1 segments in flight (the first for 3s), confirmed 0/1FF, 1.0 KiB behind")
	has(t, "line", lines[1], "2.0 KiB behind; ask Postgres: no route")
}

func TestWatchAsJSONIsAnObjectALine(t *testing.T) {
	var out bytes.Buffer
	w, ctx := watching(t, &out, 2)
	if err := w.objects(ctx); err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		var r statusReport
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Pipeline != "shop" || (r.Error != "") != (i == 1) {
			t.Errorf("line %d: %v in %s", i, err, line)
		}
	}
}

func TestWatchRedrawsInPlaceUntilItIsTold(t *testing.T) {
	for name, key := range map[string]string{"q": "xq", "Ctrl-C": "\x03", "the end": ""} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			keys, press := io.Pipe()
			w, ctx := watching(t, &out, 1000)
			read, n := w.read, 0
			w.read = func(ctx context.Context) (statusReport, error) {
				if n++; n == 3 {
					go func() {
						io.WriteString(press, key)
						if key == "" {
							press.Close()
						}
					}()
				}
				return read(ctx)
			}
			if err := w.screen(ctx, keys, func() (int, int) { return 60, 8 }); err != nil {
				t.Fatal(err)
			}
			frames := strings.Split(out.String(), cursorHome)
			if n >= 1000 || len(frames) < 3 || strings.Count(out.String(), clearScreen) != 1 {
				t.Fatalf("%d readings, %d frames", n, len(frames))
			}
			lines := strings.Split(frames[1], "\r\n")
			if len(lines) != 8 || !strings.HasPrefix(lines[6], "... and ") || lines[7] != clearBelow {
				t.Errorf("not cut to the screen: %q", lines)
			}
			for _, line := range lines {
				if len([]rune(strings.TrimSuffix(line, clearLine))) > 60 {
					t.Errorf("too long: %q", line)
				}
			}
		})
	}
}

func TestWatchRefusesToAskTooOften(t *testing.T) {
	got := run(t, []string{"TIDEMARK_PIPELINE=shop", "TIDEMARK_POSTGRES_URL=postgres://db/shop", "TIDEMARK_LAKE_URL=file:///lake"}, "status", "--watch", "--interval=1ms")
	if got.status != statusRefused {
		t.Errorf("status %d", got.status)
	}
	has(t, "stderr", got.err, "--interval", "500ms")
}
