package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tidemark-cdc/tidemark/streamer"
)

// minInterval is how often status --watch may ask at most: each time costs
// Postgres a connection and the lake two requests.
const minInterval = 500 * time.Millisecond

// watcher shows a status again and again until ctx ends.
type watcher struct {
	read  func(context.Context) (statusReport, error)
	every time.Duration
	out   io.Writer
}

// rounds calls show with each reading. That something could not be asked is
// shown with it, and no end.
func (w watcher) rounds(ctx context.Context, show func(statusReport, error) error) error {
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	for {
		r, err := w.read(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := show(r, err); err != nil {
			return fmt.Errorf("show the status: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// run watches in the way that fits what reads along.
func (w watcher) run(ctx context.Context, sys system, asJSON bool) error {
	switch {
	case asJSON:
		return w.objects(ctx)
	case sys.screen == nil || !sys.terminal():
		return w.lines(ctx)
	}
	size, restore, err := sys.screen()
	if err != nil {
		return w.lines(ctx)
	}
	defer restore()
	return w.screen(ctx, sys.stdin, size)
}

// lines writes a line for each reading, for logs and pipes.
func (w watcher) lines(ctx context.Context) error {
	return w.rounds(ctx, func(r statusReport, err error) error {
		line := time.Now().UTC().Format(time.RFC3339) + " " + r.line()
		if err != nil {
			line += "; " + oneLine(err.Error())
		}
		_, werr := fmt.Fprintln(w.out, line)
		return werr
	})
}

// objects writes a JSON object for each reading, one a line.
func (w watcher) objects(ctx context.Context) error {
	e := json.NewEncoder(w.out)
	return w.rounds(ctx, func(r statusReport, err error) error {
		if err != nil {
			r.Error = oneLine(err.Error())
		}
		return e.Encode(r)
	})
}

// The sequences of ECMA-48 that redraw a screen in place.
const (
	clearScreen = "\x1b[2J"
	cursorHome  = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// screen redraws a terminal, which is in raw mode, in place, until q, Ctrl-C or
// Ctrl-D comes from keys. size gives the terminal's columns and lines.
func (w watcher) screen(ctx context.Context, keys io.Reader, size func() (columns, lines int)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		key := make([]byte, 1)
		for {
			if _, err := keys.Read(key); err != nil || strings.ContainsRune("qQ\x03\x04", rune(key[0])) {
				return
			}
		}
	}()
	first := clearScreen
	return w.rounds(ctx, func(r statusReport, err error) error {
		var text bytes.Buffer
		fmt.Fprintf(&text, "tidemark status at %s, every %s; q ends\n\n", time.Now().Format(time.TimeOnly), w.every)
		r.writeText(&text)
		if err != nil {
			fmt.Fprintf(&text, "%-10s %s\n", "failed", oneLine(err.Error()))
		}
		columns, lines := size()
		_, werr := io.WriteString(w.out, first+frame(text.String(), columns, lines))
		first = ""
		return werr
	})
}

// frame is text as it is drawn over the last one: lines that are too long are
// cut, and so are lines that are too many, with a word about it.
func frame(text string, columns, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if lines > 1 && len(all) > lines-1 {
		left := len(all) - (lines - 2)
		all = append(all[:lines-2], fmt.Sprintf("... and %d lines more", left))
	}
	var b strings.Builder
	b.WriteString(cursorHome)
	for _, line := range all {
		if runes := []rune(line); columns > 0 && len(runes) > columns {
			line = string(runes[:columns])
		}
		b.WriteString(line + clearLine + "\r\n")
	}
	b.WriteString(clearBelow)
	return b.String()
}

// line is what matters most of a report.
func (r statusReport) line() string {
	parts := []string{r.Unreachable}
	if p := r.Process; p != nil && p.Streamer != nil {
		s := p.Streamer
		parts = []string{s.State, fmt.Sprintf("%d changes wait", s.Ring.Waiting.Changes), fmt.Sprintf("%d segments in flight", len(s.InFlight))}
		if len(s.InFlight) > 0 {
			parts[2] += fmt.Sprintf(" (the first for %s)", time.Since(s.InFlight[0].Since).Round(time.Second))
		}
		parts = append(parts, p.Reasons...)
	}
	if s := r.Slot; s != nil {
		parts = append(parts, fmt.Sprintf("confirmed %s, %s behind", s.ConfirmedFlush, streamer.BytesText(s.LagBytes)))
	}
	return strings.Join(parts, ", ")
}
