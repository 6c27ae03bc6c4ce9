package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Config says what to run.
type Config struct {
	// Name stands in errors.
	Name string
	// Path is the program, Args its arguments without the program's name.
	Path string
	Args []string
	// Env is the whole environment; nil means the parent's.
	Env []string
	// Dir is the working directory; empty means the parent's.
	Dir string
	// Log is the file that standard output and standard error are appended to.
	Log string
}

// Process is a running or ended child. Its methods are safe for concurrent use.
type Process struct {
	name string
	log  string
	from int64 // where this child's output begins in the log
	cmd  *exec.Cmd
	done chan struct{} // closed when the child has been waited for
	err  error         // how it ended; read only after done
}

// Start starts the child and returns without waiting for it to be ready. The
// child is waited for in the background, so that it is never left a zombie.
func Start(cfg Config) (*Process, error) {
	log, err := os.OpenFile(cfg.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: open its log: %w", cfg.Name, err)
	}
	defer log.Close() // the child has its own copy
	info, err := log.Stat()
	if err != nil {
		return nil, fmt.Errorf("start %s: open its log: %w", cfg.Name, err)
	}
	cmd := exec.Command(cfg.Path, cfg.Args...)
	cmd.Env = cfg.Env
	cmd.Dir = cfg.Dir
	cmd.Stdout, cmd.Stderr = log, log
	// The death signal is bound to the thread that forks. Go's threads live as
	// long as the process unless a goroutine ends while locked to one, which
	// nothing here does.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cfg.Name, err)
	}
	p := &Process{name: cfg.Name, log: cfg.Log, from: info.Size(), cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// PID is the child's process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log is the path of the file that has the child's output.
func (p *Process) Log() string { return p.log }

// Done is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Running says whether the child has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Signal sends sig to the child. Signalling a child that has ended is no error.
func (p *Process) Signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	return nil
}

// Kill9 sends SIGKILL and waits until the child is gone.
func (p *Process) Kill9() error {
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// Stop sends SIGTERM and waits. A child that is still there after grace is
// killed, which is an error. How a child ended otherwise is for Wait.
func (p *Process) Stop(grace time.Duration) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-p.done:
		return nil
	case <-t.C:
		return errors.Join(
			fmt.Errorf("%s did not end within %s of SIGTERM and was killed; its log is %s", p.name, grace, p.log),
			p.Kill9())
	}
}

// Wait waits until the child has ended or ctx has, and returns nil only if the
// child ended with status 0. Its error carries the end of the child's output.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.done:
	case <-ctx.Done():
		return fmt.Errorf("wait for %s: %w", p.name, context.Cause(ctx))
	}
	if p.err != nil {
		return fmt.Errorf("%s: %w; the end of %s:\n%s", p.name, p.err, p.log, p.Tail(20))
	}
	return nil
}

// ExitCode is the status that the child ended with: -1 while it runs and when a
// signal ended it.
func (p *Process) ExitCode() int {
	if p.Running() {
		return -1
	}
	return p.cmd.ProcessState.ExitCode()
}

// Output is everything that this child has written so far.
func (p *Process) Output() string {
	b, err := os.ReadFile(p.log)
	if err != nil || int64(len(b)) < p.from {
		return ""
	}
	return string(b[p.from:])
}

// Tail is the last n lines of Output.
func (p *Process) Tail(n int) string {
	lines := bytes.Split([]byte(strings.TrimRight(p.Output(), "\n")), []byte("\n"))
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return string(bytes.Join(lines, []byte("\n")))
}

// Ready calls probe until it returns nil. It gives up when ctx ends or the child
// does; the error then carries the probe's last error and the end of the child's
// output.
func (p *Process) Ready(ctx context.Context, every time.Duration, probe func(context.Context) error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := probe(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended before it was ready: %v; the end of %s:\n%s", p.name, p.err, p.log, p.Tail(20))
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w; the end of %s:\n%s", p.name, err, p.log, p.Tail(20))
		case <-tick.C:
		}
	}
}
