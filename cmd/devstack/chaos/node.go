package chaos

import (
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/proc"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
)

// stopGrace is how long a process may take to end after SIGTERM: its own bound
// for running uploads is five seconds.
const stopGrace = 60 * time.Second

// node is a place for one tidemark process: the processes that follow each
// other in it have the same addresses. Its methods are safe for concurrent use.
type node struct {
	run        *Run
	name, verb string
	ops, data  string
	// flight stands before data; nil for a worker.
	flight *stack.Relay

	mu     sync.Mutex
	proc   *proc.Process
	wanted bool // it is to run; the supervisor sees to it
	frozen bool
	ended  time.Time // when it was first seen to have ended by itself
}

func newNode(r *Run, name, verb string) (*node, error) {
	ports, err := stack.FreePorts(2)
	if err != nil {
		return nil, err
	}
	n := &node{run: r, name: name, verb: verb, ops: fmt.Sprintf("127.0.0.1:%d", ports[0]), data: fmt.Sprintf("127.0.0.1:%d", ports[1])}
	if verb != "worker" {
		n.flight, err = stack.NewRelay(n.data)
	}
	return n, err
}

// start starts the process if it does not run.
func (n *node) start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wanted = true
	return n.launch()
}

func (n *node) launch() (err error) {
	if n.proc != nil && n.proc.Running() {
		return nil
	}
	flags := []string{"--ops-listen", n.ops}
	if n.flight != nil {
		flags = append(flags, "--data-listen", n.data, "--data-advertise", n.flight.Address())
	}
	n.frozen, n.ended = false, time.Time{}
	n.proc, err = n.run.pipe.Start(n.name, n.verb, flags...)
	return err
}

// kill ends the process with SIGKILL, and it stays away until start.
func (n *node) kill() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wanted = false
	if n.proc == nil {
		return nil
	}
	return n.proc.Kill9()
}

// stop ends the process with SIGTERM; it must end in time, with status 0.
func (n *node) stop() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wanted = false
	if n.proc == nil || !n.proc.Running() {
		return nil
	}
	if err := n.proc.Stop(stopGrace); err != nil {
		return err
	}
	// One that has just been started, and has said nothing yet, ends as any
	// program does that does not catch SIGTERM.
	if code := n.proc.ExitCode(); code != 0 && n.proc.Output() != "" {
		return fmt.Errorf("%s ended with status %d after SIGTERM; the end of its log:\n%s", n.name, code, n.proc.Tail(20))
	}
	return nil
}

// freeze stops the process in its tracks, as a machine does that is starved or
// being moved; thaw lets it go on.
func (n *node) freeze() error { return n.pause(true, syscall.SIGSTOP) }
func (n *node) thaw() error   { return n.pause(false, syscall.SIGCONT) }

func (n *node) pause(frozen bool, sig syscall.Signal) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc == nil || !n.proc.Running() {
		return nil
	}
	n.frozen = frozen
	return n.proc.Signal(sig)
}

// running says whether the process is there and not frozen.
func (n *node) running() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.proc != nil && n.proc.Running() && !n.frozen
}

func (n *node) isWanted() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.wanted
}

func (n *node) current() *proc.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.proc
}

// revive starts a process that has ended by itself again, after a second.
func (n *node) revive() (exit Exit, ended bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.wanted || n.proc == nil || n.proc.Running() {
		return Exit{}, false
	}
	if n.ended.IsZero() {
		n.ended = time.Now()
		return Exit{Process: n.name, Status: n.proc.ExitCode(), Last: n.proc.Tail(1), At: n.ended}, true
	}
	if time.Since(n.ended) > time.Second {
		_ = n.launch() // or at the next tick
	}
	return Exit{}, false
}

func (n *node) close() error {
	err := n.kill()
	if n.flight != nil {
		n.flight.Close()
	}
	return err
}
