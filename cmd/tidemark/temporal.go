package main

import (
	"fmt"
	"log/slog"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/interceptor"

	"github.com/tidemark-cdc/tidemark/internal/config"
	"github.com/tidemark-cdc/tidemark/internal/tracker"
	"github.com/tidemark-cdc/tidemark/worker"
)

// pairs is an environment for the SDK's envconfig.
type pairs []string

func (p pairs) Environ() []string                    { return p }
func (p pairs) LookupEnv(name string) (string, bool) { return lookup(p, name) }

// temporalOptions gives the options by which Temporal is reached: what the
// temporal command would use, and over it what our own settings say. The
// second result says where the address came from.
func temporalOptions(c *config.Config, environ []string) (client.Options, string, error) {
	opts, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{
		ConfigFileProfile: c.Temporal.Profile,
		EnvLookup:         pairs(environ),
	})
	if err != nil {
		return client.Options{}, "", fmt.Errorf("Temporal's own configuration (TEMPORAL_* variables and temporal.toml) cannot be used: %w", err)
	}
	origin := "Temporal's profile"
	switch _, set := lookup(environ, "TEMPORAL_ADDRESS"); {
	case c.Temporal.Address != "":
		opts.HostPort, origin = c.Temporal.Address, c.Origin("temporal.address").String()
	case set:
		origin = "TEMPORAL_ADDRESS"
	case opts.HostPort == "":
		opts.HostPort, origin = client.DefaultHostPort, "default of the Temporal SDK"
	}
	if c.Temporal.Namespace != "" {
		opts.Namespace = c.Temporal.Namespace
	}
	if opts.Namespace == "" {
		opts.Namespace = client.DefaultNamespace
	}
	return opts, origin, nil
}

// fillTemporal shows in c what Temporal's own configuration has set.
func fillTemporal(c *config.Config, environ []string) error {
	opts, origin, err := temporalOptions(c, environ)
	if err != nil {
		return err
	}
	c.Fill("temporal.address", opts.HostPort, origin)
	origin = "Temporal's profile"
	if _, set := lookup(environ, "TEMPORAL_NAMESPACE"); set {
		origin = "TEMPORAL_NAMESPACE"
	} else if opts.Namespace == client.DefaultNamespace {
		origin = "default of the Temporal SDK"
	}
	c.Fill("temporal.namespace", opts.Namespace, origin)
	return nil
}

// lazyTemporal makes a client that connects when it is first used, so that a
// process can start while Temporal is down.
func lazyTemporal(c *config.Config, environ []string, metrics client.MetricsHandler, logger *slog.Logger, interceptors ...interceptor.ClientInterceptor) (client.Client, error) {
	opts, _, err := temporalOptions(c, environ)
	if err != nil {
		return nil, refused(err)
	}
	opts.Logger = worker.ClientLogger(calm(logger))
	opts.MetricsHandler, opts.Interceptors = metrics, interceptors
	tc, err := client.NewLazyClient(opts)
	if err != nil {
		return nil, fmt.Errorf("make a Temporal client for %s: %w", opts.HostPort, err)
	}
	return tc, nil
}

func newTracker(c *config.Config, environ []string, tc client.Client, h *health, eager bool, logger *slog.Logger) (*tracker.Tracker, error) {
	opts, _, err := temporalOptions(c, environ)
	if err != nil {
		return nil, refused(err)
	}
	return tracker.New(tc, tracker.Config{
		TaskQueue: c.Temporal.TaskQueue,
		Namespace: opts.Namespace,
		Eager:     eager,
		OnOutage:  h.temporalOutage,
		Logger:    logger,
	}), nil
}
