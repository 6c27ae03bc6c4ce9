package main

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/config"
)

func TestLogsAreTextForAPersonAndJSONForAMachine(t *testing.T) {
	for name, tc := range map[string]struct {
		format  string
		colored bool
		want    string
	}{
		"terminal":         {"auto", true, "msg=hello took=1m30s"},
		"no terminal":      {"auto", false, `"msg":"hello","took":"1m30s"`},
		"text for a file":  {"text", false, "msg=hello took=1m30s"},
		"JSON on terminal": {"json", true, `"msg":"hello","took":"1m30s"`},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			logger := newLogger(&config.Config{Log: config.Log{Level: "info", Format: tc.format}}, system{stderr: &out, colored: tc.colored})
			logger.Debug("unsaid")
			logger.Info("hello", "took", 90*time.Second)
			if got := out.String(); !strings.Contains(got, tc.want) || strings.Contains(got, "unsaid") {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestWhereTheMachineHasNoMoreFilesTheLogSaysWhatToDo(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		says bool
	}{
		"a connection":     {&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}, true},
		"one through gRPC": {errors.New("rpc error: code = Unavailable desc = socket: too many open files"), true},
		"something else":   {errors.New("connection refused"), false},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			logger := newLogger(&config.Config{Log: config.Log{Level: "info"}}, system{stderr: &out, colored: true}).With("pipeline", "p")
			logger.Warn("Postgres cannot be streamed from", "error", tc.err)
			if got := out.String(); strings.Contains(got, "LimitNOFILE") != tc.says || !strings.Contains(got, tc.err.Error()) {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestLibrariesAreCalm(t *testing.T) {
	var out bytes.Buffer
	logger := calm(slog.New(slog.NewTextHandler(&out, nil))).With("a", 1).WithGroup("g")
	logger.Info("started worker")
	logger.Warn("lost connection", "b", 2)
	if got := out.String(); strings.Contains(got, "started worker") || !strings.Contains(got, `level=WARN msg="lost connection" a=1 g.b=2`) {
		t.Errorf("got %s", got)
	}
}

func TestErrorsOfSeveralLinesAreOne(t *testing.T) {
	if got := oneLine("failed to connect:\n\tdial a: refused\n\tdial a: refused\n\n\tdial b: refused\n"); got != "failed to connect: dial a: refused; dial b: refused" {
		t.Errorf("got %q", got)
	}
}
