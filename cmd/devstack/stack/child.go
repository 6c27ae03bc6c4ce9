package stack

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/proc"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/s3gateway"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/temporalserver"
)

// What tells a process that it is a child of a stack, and which one. The
// configuration is in the environment, and not among the arguments, because it
// holds the gateway's secret key.
const (
	childVariable  = "DEVSTACK_CHILD"
	configVariable = "DEVSTACK_CONFIG"

	temporalChild = "temporal"
	s3Child       = "s3"
)

// Main runs this process as the child that its environment names, and then does
// not return. In any other process it does nothing.
func Main() {
	name := os.Getenv(childVariable)
	if name == "" {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := runChild(ctx, name, []byte(os.Getenv(configVariable))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func runChild(ctx context.Context, name string, config []byte) error {
	switch name {
	case temporalChild:
		var cfg temporalserver.Config
		if err := json.Unmarshal(config, &cfg); err != nil {
			return fmt.Errorf("read the configuration of %s: %w", name, err)
		}
		return temporalserver.Run(ctx, cfg)
	case s3Child:
		var cfg s3gateway.Config
		if err := json.Unmarshal(config, &cfg); err != nil {
			return fmt.Errorf("read the configuration of %s: %w", name, err)
		}
		return s3gateway.Run(ctx, cfg)
	default:
		return fmt.Errorf("%s=%s: there is no such child", childVariable, name)
	}
}

// startChild starts this program again as the named child.
func startChild(name, log string, config any) (*proc.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start %s: find this program: %w", name, err)
	}
	b, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return proc.Start(proc.Config{
		Name: name,
		Path: self,
		Env:  append(os.Environ(), childVariable+"="+name, configVariable+"="+string(b)),
		Log:  log,
	})
}
