package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/proc"
)

// Pipeline is a configuration file and what is needed to run verbs with it.
type Pipeline struct {
	// Binary is the tidemark program, Config its configuration file.
	Binary, Config string
	// Env is added to the environment of every process: the store's credentials.
	// What would configure Tidemark, Temporal, AWS or Postgres otherwise is taken
	// out of it.
	Env []string
	// Logs is the folder that the processes' logs go to.
	Logs string
}

// Result is how a verb ended.
type Result struct {
	Stdout, Stderr string
	// Code is the exit status.
	Code int
}

// Verb runs a verb to its end, which may be of several words. Only a verb that could not be run, or that ctx
// ended, is an error: a status other than 0 is for the caller to judge.
func (p *Pipeline) Verb(ctx context.Context, verb string, args ...string) (Result, error) {
	words := append(strings.Fields(verb), "--config", p.Config)
	cmd := exec.CommandContext(ctx, p.Binary, append(words, args...)...)
	cmd.Env = p.environ()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	r := Result{Stdout: stdout.String(), Stderr: stderr.String(), Code: cmd.ProcessState.ExitCode()}
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		err = nil
	}
	if err != nil {
		return r, fmt.Errorf("tidemark %s: %w\n%s", verb, err, r.Stderr)
	}
	return r, nil
}

// Must runs a verb that has to end with status 0.
func (p *Pipeline) Must(ctx context.Context, verb string, args ...string) (Result, error) {
	r, err := p.Verb(ctx, verb, args...)
	if err == nil && r.Code != 0 {
		err = fmt.Errorf("tidemark %s ended with status %d:\n%s%s", verb, r.Code, r.Stdout, r.Stderr)
	}
	return r, err
}

// Setup runs tidemark setup.
func (p *Pipeline) Setup(ctx context.Context) error {
	_, err := p.Must(ctx, "setup")
	return err
}

// Status reads tidemark status --json into v.
func (p *Pipeline) Status(ctx context.Context, v any) error {
	r, err := p.Verb(ctx, "status", "--json")
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(r.Stdout), v); err != nil {
		return fmt.Errorf("read tidemark status (exit status %d): %w\n%s%s", r.Code, err, r.Stdout, r.Stderr)
	}
	return nil
}

// Start starts a verb that goes on: run, streamer or worker. Its output goes to
// <name>.log.
func (p *Pipeline) Start(name, verb string, args ...string) (*proc.Process, error) {
	return proc.Start(proc.Config{
		Name: "tidemark " + verb,
		Path: p.Binary,
		Args: append([]string{verb, "--config", p.Config}, args...),
		Env:  p.environ(),
		Log:  filepath.Join(p.Logs, name+".log"),
	})
}

// environ is the environment of the processes: the parent's without anything
// that they would take for their configuration.
func (p *Pipeline) environ() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "TIDEMARK_") && !strings.HasPrefix(v, "TEMPORAL_") &&
			!strings.HasPrefix(v, "AWS_") && !strings.HasPrefix(v, "PG") {
			env = append(env, v)
		}
	}
	return append(env, p.Env...)
}
