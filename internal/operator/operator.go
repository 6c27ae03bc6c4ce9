package operator

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// Temporal is the part of client.Client that an Operator uses.
type Temporal interface {
	ListWorkflow(ctx context.Context, request *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error)
	DescribeWorkflowExecution(ctx context.Context, workflowID, runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error)
	GetWorkflowHistory(ctx context.Context, workflowID, runID string, isLongPoll bool, filterType enumspb.HistoryEventFilterType) client.HistoryEventIterator
	ExecuteWorkflow(ctx context.Context, options client.StartWorkflowOptions, workflow any, args ...any) (client.WorkflowRun, error)
	UpdateWorkflow(ctx context.Context, options client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error)
}

// Config sets up an Operator.
type Config struct {
	Pipeline string
	// Address and Namespace say for errors which Temporal is asked.
	Address, Namespace string
	// TaskQueue is where the pipeline's workers listen.
	TaskQueue string
	// UI is the address of Temporal's UI, for links; empty for none.
	UI string
	// DataConverter is the client's; nil is the SDK's default.
	DataConverter converter.DataConverter
	// CallTimeout bounds one call. Zero is 10 s.
	CallTimeout time.Duration
	// UpdateTimeout bounds how long an update is waited for. Zero is 5 min.
	UpdateTimeout time.Duration
	// Progress, if set, is told what is being done, in words and by any
	// goroutine: what there is much of, or is waited for.
	Progress func(format string, args ...any)
}

// Operator looks at the segments of one pipeline. Safe for concurrent use.
type Operator struct {
	temporal Temporal
	cfg      Config
}

// New makes an Operator over a client, which stays the caller's.
func New(temporal Temporal, cfg Config) *Operator {
	if cfg.DataConverter == nil {
		cfg.DataConverter = converter.GetDefaultDataConverter()
	}
	if cfg.CallTimeout <= 0 {
		cfg.CallTimeout = 10 * time.Second
	}
	if cfg.UpdateTimeout <= 0 {
		cfg.UpdateTimeout = 5 * time.Minute
	}
	if cfg.Progress == nil {
		cfg.Progress = func(string, ...any) {}
	}
	return &Operator{temporal: temporal, cfg: cfg}
}

// ErrUnknown says that Temporal knows no segment that begins at a position.
var ErrUnknown = errors.New("Temporal knows no segment that begins there")

// call bounds one call and says who was asked.
func (o *Operator) call(ctx context.Context, action string, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, o.cfg.CallTimeout)
	defer cancel()
	if err := do(ctx); err != nil {
		return o.failed(action, err)
	}
	return nil
}

func (o *Operator) failed(action string, err error) error {
	var none *serviceerror.NotFound
	var noNamespace *serviceerror.NamespaceNotFound
	var invalid *serviceerror.InvalidArgument
	advice := "check temporal.address and whether Temporal is up"
	switch {
	case errors.As(err, &none):
		return fmt.Errorf("%s: %w", action, err)
	case errors.As(err, &noNamespace):
		advice = "check temporal.namespace"
	case errors.As(err, &invalid):
		advice = "if it does not know Tidemark's search attributes, run tidemark setup"
	}
	return fmt.Errorf("%s: Temporal at %s, namespace %s: %w; %s", action, o.cfg.Address, o.cfg.Namespace, err, advice)
}

// Link is a workflow's page in Temporal's UI; empty if no UI is configured. An
// empty run is the latest.
func (o *Operator) Link(workflowID, runID string) string {
	if o.cfg.UI == "" {
		return ""
	}
	link := strings.TrimRight(o.cfg.UI, "/") + "/namespaces/" + url.PathEscape(o.cfg.Namespace) + "/workflows/" + url.PathEscape(workflowID)
	if runID != "" {
		link += "/" + url.PathEscape(runID) + "/history"
	}
	return link
}

// ParseID reads a segment's first position, or its workflow ID, which ends in
// it.
func (o *Operator) ParseID(text string) (change.Position, error) {
	at := text
	if strings.Contains(text, "/") {
		rest, mine := strings.CutPrefix(text, "tidemark/"+o.cfg.Pipeline+"/")
		if !mine {
			return change.Position{}, fmt.Errorf("%q is no workflow ID of pipeline %s: want tidemark/%s/ and a position", text, o.cfg.Pipeline, o.cfg.Pipeline)
		}
		at = rest
	}
	p, err := change.ParsePosition(at)
	if err != nil {
		return change.Position{}, fmt.Errorf("%q is neither the first position of a segment nor its workflow ID: tidemark segments list shows them", text)
	}
	return p, nil
}

func (o *Operator) id(first change.Position) string { return segment.WorkflowID(o.cfg.Pipeline, first) }
