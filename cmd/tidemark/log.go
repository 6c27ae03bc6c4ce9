package main

import (
	"context"
	"log/slog"
	"strings"
	"syscall"

	"github.com/tidemark-cdc/tidemark/internal/config"
)

// newLogger makes the process' logger, which writes to stderr: text for a
// person, JSON for a machine, unless log.format says which.
func newLogger(c *config.Config, sys system) *slog.Logger {
	logger, _ := newLeveledLogger(c, sys)
	return logger
}

// newLeveledLogger is newLogger with the means to set another level.
func newLeveledLogger(c *config.Config, sys system) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	if level.UnmarshalText([]byte(c.Log.Level)) != nil {
		level.Set(slog.LevelInfo)
	}
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: readable}
	if c.Log.Format == "text" || c.Log.Format != "json" && sys.colored {
		return slog.New(adviser{slog.NewTextHandler(sys.stderr, opts)}), level
	}
	return slog.New(adviser{slog.NewJSONHandler(sys.stderr, opts)}), level
}

// moreFiles is what to do about a process that may not open another file. Any
// connection can be the one that fails by it, and what was tried says nothing of
// the cause.
const moreFiles = "this process has as many files and connections open as it may: raise its limit (ulimit -n, LimitNOFILE= of systemd) to 1024 or more and start it again; process_open_fds and process_max_fds show both"

// adviser adds to a record whose error is the machine's what to do about it.
type adviser struct{ slog.Handler }

func (h adviser) Handle(ctx context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok && outOfFiles(err) {
			r = r.Clone()
			r.AddAttrs(slog.String("do", moreFiles))
			return false
		}
		return true
	})
	return h.Handler.Handle(ctx, r)
}

func (h adviser) WithAttrs(attrs []slog.Attr) slog.Handler {
	return adviser{h.Handler.WithAttrs(attrs)}
}

func (h adviser) WithGroup(name string) slog.Handler { return adviser{h.Handler.WithGroup(name)} }

// outOfFiles goes by the text: what has come through gRPC has no cause any more.
func outOfFiles(err error) bool { return strings.Contains(err.Error(), syscall.EMFILE.Error()) }

// readable writes durations as 1m30s, which the JSON handler would not.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// calm gives a logger for a library that tells at level info what nobody but
// its authors wants to know: everything below a warning becomes debug.
func calm(logger *slog.Logger) *slog.Logger { return slog.New(calmHandler{logger.Handler()}) }

type calmHandler struct{ slog.Handler }

func (h calmHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, calmed(level))
}

func (h calmHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Level = calmed(r.Level)
	return h.Handler.Handle(ctx, r)
}

func (h calmHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return calmHandler{h.Handler.WithAttrs(attrs)}
}

func (h calmHandler) WithGroup(name string) slog.Handler {
	return calmHandler{h.Handler.WithGroup(name)}
}

func calmed(level slog.Level) slog.Level {
	if level < slog.LevelWarn {
		return min(level, slog.LevelDebug)
	}
	return level
}
