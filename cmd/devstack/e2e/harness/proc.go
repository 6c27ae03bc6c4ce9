package harness

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/proc"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
)

// Proc is a tidemark process of a test. It is killed when the test ends.
type Proc struct {
	*proc.Process
	// Ops is the address of its own page.
	Ops string

	h          *Harness
	name, verb string
}

// Run starts tidemark run: streamer and worker in one process. args are further
// flags.
func (h *Harness) Run(args ...string) *Proc { h.t.Helper(); return h.start("run", args) }

// Streamer starts tidemark streamer.
func (h *Harness) Streamer(args ...string) *Proc { h.t.Helper(); return h.start("streamer", args) }

// Worker starts tidemark worker.
func (h *Harness) Worker(args ...string) *Proc { h.t.Helper(); return h.start("worker", args) }

// Start starts another verb, which is not waited for.
func (h *Harness) Start(verb string, args ...string) *Proc { h.t.Helper(); return h.start(verb, args) }

// start gives each process ports of its own, so that there can be several of
// each kind.
func (h *Harness) start(verb string, args []string) *Proc {
	h.t.Helper()
	ports, err := stack.FreePorts(2)
	if err != nil {
		h.t.Fatal(err)
	}
	p := &Proc{h: h, verb: verb, name: fmt.Sprintf("%s-%d", verb, len(h.procs)+1), Ops: fmt.Sprintf("127.0.0.1:%d", ports[0])}
	flags := []string{"--ops-listen", p.Ops}
	if verb != "worker" {
		flags = append(flags, "--data-listen", fmt.Sprintf("127.0.0.1:%d", ports[1]))
	}
	if p.Process, err = h.Pipeline.Start(p.name, verb, append(flags, args...)...); err != nil {
		h.t.Fatal(err)
	}
	h.procs = append(h.procs, p)
	return p
}

// Kill9 ends the process with SIGKILL.
func (p *Proc) Kill9() {
	p.h.t.Helper()
	if err := p.Process.Kill9(); err != nil {
		p.h.t.Fatal(err)
	}
}

// Stop sends SIGTERM and waits. The process has to end with status 0.
func (p *Proc) Stop() {
	p.h.t.Helper()
	if err := p.Process.Stop(Bound); err != nil {
		p.h.t.Fatal(err)
	}
	if p.ExitCode() != 0 {
		p.h.t.Fatalf("%s ended with status %d after SIGTERM; the end of its log:\n%s", p.name, p.ExitCode(), p.Tail(30))
	}
}

// WaitStreaming waits until a streamer has the slot, and fails the test if p
// ends before.
func (p *Proc) WaitStreaming() {
	p.h.t.Helper()
	p.h.Eventually(Bound, func() string {
		if !p.Running() {
			p.h.t.Fatalf("%s has ended with status %d; the end of its log:\n%s", p.name, p.ExitCode(), p.Tail(30))
		}
		if !p.h.SlotActive() {
			return "nobody reads from the slot"
		}
		return ""
	})
}

// WaitLog waits until the process has written text.
func (p *Proc) WaitLog(text string, bound time.Duration) {
	p.h.t.Helper()
	p.h.Eventually(bound, func() string {
		if strings.Contains(p.Output(), text) {
			return ""
		}
		return fmt.Sprintf("%s has not written %q", p.name, text)
	})
}

func tail(path string, lines int) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimRight(b, "\n"), []byte("\n"))
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return string(bytes.Join(all, []byte("\n")))
}
