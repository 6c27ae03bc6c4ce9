package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sort"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"

	"github.com/tidemark-cdc/tidemark/internal/config"
	"github.com/tidemark-cdc/tidemark/workflows"
)

// minRetention is how long a namespace must remember a closed workflow: the
// IDs of completed segments are what a replay is compared with first.
const minRetention = 24 * time.Hour

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
func lazyTemporal(c *config.Config, environ []string, logger *slog.Logger) (client.Client, error) {
	opts, _, err := temporalOptions(c, environ)
	if err != nil {
		return nil, refused(err)
	}
	opts.Logger = log.NewStructuredLogger(calm(logger))
	tc, err := client.NewLazyClient(opts)
	if err != nil {
		return nil, fmt.Errorf("make a Temporal client for %s: %w", opts.HostPort, err)
	}
	return tc, nil
}

// temporalAdmin is what setup does in Temporal.
type temporalAdmin struct {
	client    client.Client
	address   string
	namespace string
}

// openTemporal connects to Temporal within ten seconds.
func openTemporal(ctx context.Context, c *config.Config, environ []string, logger *slog.Logger) (*temporalAdmin, error) {
	opts, _, err := temporalOptions(c, environ)
	if err != nil {
		return nil, err
	}
	opts.Logger = log.NewStructuredLogger(calm(logger))
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tc, err := client.DialContext(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("Temporal at %s cannot be reached: %w; set TEMPORAL_ADDRESS or temporal.address, and start Temporal", opts.HostPort, err)
	}
	return &temporalAdmin{client: tc, address: opts.HostPort, namespace: opts.Namespace}, nil
}

func (t *temporalAdmin) close() { t.client.Close() }

// checkNamespace refuses a namespace that is not there or forgets too early.
func (t *temporalAdmin) checkNamespace(ctx context.Context) error {
	resp, err := t.client.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: t.namespace})
	var notFound *serviceerror.NamespaceNotFound
	if errors.As(err, &notFound) {
		return fmt.Errorf("Temporal at %s has no namespace %q: make it with temporal operator namespace create --retention 72h %s, or set temporal.namespace", t.address, t.namespace, t.namespace)
	}
	if err != nil {
		return fmt.Errorf("describe namespace %q at %s: %w", t.namespace, t.address, err)
	}
	if keep := resp.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(); keep < minRetention {
		return fmt.Errorf("namespace %q keeps closed workflows for %s, and a restart may need them for at least %s: run temporal operator namespace update --retention 72h %s", t.namespace, keep, minRetention, t.namespace)
	}
	return nil
}

// missingAttributes lists the search attributes that the namespace lacks,
// sorted, and refuses those that exist with another type.
func (t *temporalAdmin) missingAttributes(ctx context.Context) ([]string, error) {
	resp, err := t.client.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: t.namespace})
	if err != nil {
		return nil, fmt.Errorf("list the search attributes of namespace %q: %w", t.namespace, err)
	}
	var missing, wrong []string
	for name, want := range workflows.AttributeTypes() {
		switch have, ok := resp.GetCustomAttributes()[name]; {
		case !ok:
			missing = append(missing, name)
		case have != want:
			wrong = append(wrong, fmt.Sprintf("%s is %s and should be %s", name, have, want))
		}
	}
	if len(wrong) > 0 {
		sort.Strings(wrong)
		return nil, fmt.Errorf("namespace %q has search attributes of another type: %s; use another namespace, or remove them with temporal operator search-attribute remove", t.namespace, strings.Join(wrong, ", "))
	}
	sort.Strings(missing)
	return missing, nil
}

// addAttributes registers search attributes. That they exist is no error.
func (t *temporalAdmin) addAttributes(ctx context.Context, names []string) error {
	add := make(map[string]enumspb.IndexedValueType, len(names))
	types := workflows.AttributeTypes()
	for _, name := range names {
		add[name] = types[name]
	}
	_, err := t.client.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: t.namespace, SearchAttributes: add,
	})
	var exists *serviceerror.AlreadyExists
	if err != nil && !errors.As(err, &exists) {
		return fmt.Errorf("register the search attributes %s in namespace %q: %w", strings.Join(names, ", "), t.namespace, err)
	}
	return nil
}
