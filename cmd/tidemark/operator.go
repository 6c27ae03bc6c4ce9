package main

import (
	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/tidemark-cdc/tidemark/internal/config"
	"github.com/tidemark-cdc/tidemark/internal/operator"
)

// openOperator connects to Temporal for a verb that looks at segments. The
// second result ends the connection.
func openOperator(c *config.Config, sys system, p *progress) (*operator.Operator, func(), error) {
	tc, err := lazyTemporal(c, sys.environ, nil, newLogger(c, sys))
	if err != nil {
		return nil, nil, err
	}
	o, err := newOperator(c, sys.environ, tc, p)
	return o, tc.Close, err
}

// newOperator makes an operator over a client.
func newOperator(c *config.Config, environ []string, tc client.Client, p *progress) (*operator.Operator, error) {
	opts, _, err := temporalOptions(c, environ)
	if err != nil {
		return nil, refused(err)
	}
	return operator.New(tc, operator.Config{
		Pipeline: c.Pipeline, Address: opts.HostPort, Namespace: opts.Namespace,
		TaskQueue: c.Temporal.TaskQueue, UI: c.Temporal.UI, Progress: p.doing,
	}), nil
}

// withOperator runs a verb that needs the pipeline's name and Temporal, and
// nothing else.
func withOperator(sys system, run func(*cobra.Command, []string, *operator.Operator, *progress) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := loadSettings(cmd, sys, config.NeedPipeline)
		if err != nil {
			return err
		}
		p := sys.progress()
		defer p.end()
		o, end, err := openOperator(c, sys, p)
		if err != nil {
			return err
		}
		defer end()
		p.doing("asking Temporal")
		return run(cmd, args, o, p)
	}
}
