package tracker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-cdc/tidemark/workflows"
)

// MinRetention is the shortest retention that a namespace may have: for so long
// Temporal remembers a completed segment, and a replay after a crash adopts what
// it remembers.
const MinRetention = 24 * time.Hour

// Missing gives the names of the search attributes that the namespace lacks,
// sorted. One that exists with another type is an error.
func (t *Tracker) Missing(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, t.cfg.CallTimeout)
	defer cancel()
	have, err := t.client.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: t.cfg.Namespace})
	if err != nil {
		return nil, fmt.Errorf("list search attributes of the namespace %s: %w", t.cfg.Namespace, err)
	}
	want := workflows.AttributeTypes()
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		switch got, ok := have.GetCustomAttributes()[name]; {
		case !ok:
			missing = append(missing, name)
		case got != want[name]:
			return nil, fmt.Errorf("the search attribute %s of the namespace %s has the type %s, Tidemark needs %s: remove it (`temporal operator search-attribute remove`) or use another namespace",
				name, t.cfg.Namespace, got, want[name])
		}
	}
	return missing, nil
}

// Setup registers the search attributes that the namespace lacks and returns
// their names. Doing it twice changes nothing. It does not retry.
func (t *Tracker) Setup(ctx context.Context) ([]string, error) {
	missing, err := t.Missing(ctx)
	if err != nil {
		return nil, permission(err, t.cfg.Namespace, nil)
	}
	if len(missing) == 0 {
		return nil, nil
	}
	want := workflows.AttributeTypes()
	add := make(map[string]enumspb.IndexedValueType, len(missing))
	for _, name := range missing {
		add[name] = want[name]
	}
	ctx, cancel := context.WithTimeout(ctx, t.cfg.CallTimeout)
	defer cancel()
	_, err = t.client.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: t.cfg.Namespace, SearchAttributes: add,
	})
	// Another setup may have come first.
	var exists *serviceerror.AlreadyExists
	if err != nil && !errors.As(err, &exists) {
		return nil, permission(fmt.Errorf("register search attributes %s in the namespace %s: %w",
			strings.Join(missing, ", "), t.cfg.Namespace, err), t.cfg.Namespace, missing)
	}
	return missing, nil
}

// permission turns a refusal into a sentence with the commands for someone who
// may.
func permission(err error, namespace string, missing []string) error {
	if c := code(err); c != codes.PermissionDenied && c != codes.Unimplemented && c != codes.Unauthenticated {
		return err
	}
	if missing == nil {
		missing = slices.Sorted(maps.Keys(workflows.AttributeTypes()))
	}
	return fmt.Errorf("this connection may not register search attributes; have an administrator of the namespace run: %s: %w",
		commands(namespace, missing), err)
}

// commands are the temporal CLI's for registering attributes.
func commands(namespace string, names []string) string {
	want := workflows.AttributeTypes()
	var b strings.Builder
	fmt.Fprintf(&b, "temporal operator search-attribute create --namespace %s", namespace)
	for _, name := range names {
		fmt.Fprintf(&b, " --name %s --type %s", name, want[name])
	}
	return b.String()
}

// Problem is something that stands in the way of running on a Temporal.
type Problem struct {
	// What is wrong, and Do what to do about it; Do may be empty.
	What, Do string
	// Setup says that tidemark setup does it.
	Setup bool
}

// String is both.
func (p Problem) String() string {
	if p.Do == "" {
		return p.What
	}
	return p.What + ": " + p.Do
}

// Check says what stands in the way of running on this Temporal, all problems
// at once. It does not retry.
func (t *Tracker) Check(ctx context.Context) []Problem {
	ctx, cancel := context.WithTimeout(ctx, t.cfg.CallTimeout)
	defer cancel()
	if _, err := t.client.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil && code(err) != codes.PermissionDenied && code(err) != codes.Unimplemented {
		return []Problem{{What: fmt.Sprintf("Temporal does not answer: %v", err), Do: "check its address, TLS and API key (TEMPORAL_ADDRESS and the other settings of the temporal CLI)"}}
	}
	described, err := t.client.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: t.cfg.Namespace})
	var none *serviceerror.NamespaceNotFound
	switch {
	case errors.As(err, &none):
		return []Problem{{What: fmt.Sprintf("Temporal has no namespace %s", t.cfg.Namespace),
			Do: fmt.Sprintf("temporal operator namespace create --namespace %s --retention 72h (or name another one: temporal.namespace)", t.cfg.Namespace)}}
	case err != nil:
		return []Problem{{What: fmt.Sprintf("Temporal does not describe the namespace %s: %v", t.cfg.Namespace, err)}}
	}
	var problems []Problem
	if retention := described.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(); retention < MinRetention {
		problems = append(problems, Problem{What: fmt.Sprintf("the namespace %s keeps closed workflows for %s, Tidemark needs at least %s", t.cfg.Namespace, retention, MinRetention),
			Do: fmt.Sprintf("temporal operator namespace update --namespace %s --retention 72h", t.cfg.Namespace)})
	}
	missing, err := t.Missing(ctx)
	switch {
	case code(err) == codes.PermissionDenied || code(err) == codes.Unimplemented:
		// Not everyone may list them. The first start tells.
		t.cfg.Logger.Info("Temporal does not let this connection list search attributes: not checked", "error", err)
	case err != nil:
		problems = append(problems, Problem{What: err.Error()})
	case len(missing) > 0:
		problems = append(problems, Problem{Setup: true, What: fmt.Sprintf("the namespace %s lacks the search attributes %s", t.cfg.Namespace, strings.Join(missing, ", ")),
			Do: "tidemark setup, or " + commands(t.cfg.Namespace, missing)})
	}
	return problems
}
