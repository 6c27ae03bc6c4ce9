package stack

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/proc"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/temporalserver"
)

// Retention is how long the stack's Temporal remembers a closed workflow.
const Retention = 72 * time.Hour

// TemporalOptions say which Temporal server to run.
type TemporalOptions struct {
	// Namespace to register; empty is "default".
	Namespace string
	// Memory keeps the server's state in memory: faster, and gone when the
	// server stops.
	Memory bool
	// NoUI leaves the UI out.
	NoUI bool
	// Port and UIPort on 127.0.0.1; zero is a free one.
	Port, UIPort int
}

// Temporal is the stack's Temporal server. Its methods are not safe for
// concurrent use.
type Temporal struct {
	cfg  temporalserver.Config
	log  string
	proc *proc.Process
}

func newTemporal(dir string, opt TemporalOptions) (*Temporal, error) {
	cfg := temporalserver.Config{
		Namespace: opt.Namespace, Retention: Retention, Port: opt.Port, UIPort: opt.UIPort, LogLevel: "warn",
	}
	if cfg.Namespace == "" {
		cfg.Namespace = client.DefaultNamespace
	}
	if !opt.Memory {
		cfg.Database = filepath.Join(dir, "temporal.db")
	}
	if err := fill(&cfg.Port, &cfg.UIPort, &cfg.Inner[0], &cfg.Inner[1], &cfg.Inner[2]); err != nil {
		return nil, err
	}
	if opt.NoUI {
		cfg.UIPort = 0
	}
	return &Temporal{cfg: cfg, log: filepath.Join(dir, "temporal.log")}, nil
}

// Address is the frontend's host:port.
func (t *Temporal) Address() string { return fmt.Sprintf("127.0.0.1:%d", t.cfg.Port) }

// Namespace is the one that is registered.
func (t *Temporal) Namespace() string { return t.cfg.Namespace }

// UI is the address of the UI; empty without one.
func (t *Temporal) UI() string {
	if t.cfg.UIPort == 0 {
		return ""
	}
	return fmt.Sprintf("http://127.0.0.1:%d", t.cfg.UIPort)
}

// Start starts the server and waits until its namespace answers.
func (t *Temporal) Start(ctx context.Context) error {
	if t.proc != nil && t.proc.Running() {
		return nil
	}
	p, err := startChild(temporalChild, t.log, t.cfg)
	if err != nil {
		return err
	}
	t.proc = p
	c, err := client.NewLazyClient(client.Options{HostPort: t.Address(), Namespace: t.cfg.Namespace, Logger: quiet{}})
	if err != nil {
		return fmt.Errorf("start temporal: %w", err)
	}
	defer c.Close()
	return p.Ready(ctx, 100*time.Millisecond, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: t.cfg.Namespace})
		if err != nil {
			return fmt.Errorf("describe namespace %s at %s: %w", t.cfg.Namespace, t.Address(), err)
		}
		if t.UI() == "" {
			return nil
		}
		return answers(ctx, t.UI())
	})
}

// Stop stops the server. What it knows stays in its file.
func (t *Temporal) Stop() error {
	if t.proc == nil {
		return nil
	}
	return t.proc.Stop(90 * time.Second)
}

// Kill ends the server with SIGKILL.
func (t *Temporal) Kill() error {
	if t.proc == nil {
		return nil
	}
	return t.proc.Kill9()
}

// Restart stops the server and starts it again, at the same address.
func (t *Temporal) Restart(ctx context.Context) error {
	if err := t.Stop(); err != nil {
		return err
	}
	return t.Start(ctx)
}

// Running says whether the server's process is there.
func (t *Temporal) Running() bool { return t.proc != nil && t.proc.Running() }

// PID is the server's process ID; zero before the first Start.
func (t *Temporal) PID() int {
	if t.proc == nil {
		return 0
	}
	return t.proc.PID()
}

// Log is the path of the server's log.
func (t *Temporal) Log() string { return t.log }

// answers says why a GET of url does not give 200.
func answers(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("get %s: %s", url, resp.Status)
	}
	return nil
}

// quiet drops what the SDK logs while the server is not there yet.
type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}
