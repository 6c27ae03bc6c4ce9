package trackertest

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Namespace is the one that a Frontend has.
const Namespace = "tidemark-test"

// Frontend answers the calls that a tracker makes, over gRPC on loopback, and
// keeps workflows in memory. It runs none: Finish completes them. Its exported
// fields are set before it is called.
type Frontend struct {
	workflowservice.UnimplementedWorkflowServiceServer
	operatorservice.UnimplementedOperatorServiceServer

	// Before, if set, may fail a call before it has any effect; After may
	// replace the answer of a call that has had its effect. method is the bare
	// name, such as "StartWorkflowExecution".
	Before, After func(method string) error
	// Deaf has long polls miss that a run ends, so that they are never answered.
	Deaf bool
	// Retention is the namespace's. Zero is 72 h.
	Retention time.Duration

	mu         sync.Mutex
	changed    *sync.Cond
	workflows  map[string][]*run // by ID, the latest run last
	attributes map[string]enumspb.IndexedValueType
	runs       int
	closed     bool

	address string
}

// run is one run of a workflow.
type run struct {
	id, runID string
	status    enumspb.WorkflowExecutionStatus
	reason    string
	start     *workflowservice.StartWorkflowExecutionRequest
	began     time.Time
	signals   []*commonpb.Payloads
}

func (r *run) open() bool { return r.status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING }

// NewFrontend serves f until the test ends, and returns it.
func NewFrontend(t *testing.T, f *Frontend) *Frontend {
	t.Helper()
	f.changed = sync.NewCond(&f.mu)
	f.workflows = make(map[string][]*run)
	f.attributes = make(map[string]enumspb.IndexedValueType)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(f.spoil))
	workflowservice.RegisterWorkflowServiceServer(server, f)
	operatorservice.RegisterOperatorServiceServer(server, f)
	healthpb.RegisterHealthServer(server, serving())
	f.address = listener.Addr().String()
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		f.mu.Lock()
		f.closed = true
		f.changed.Broadcast()
		f.mu.Unlock()
		server.Stop()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return f
}

func serving() *health.Server {
	h := health.NewServer()
	h.SetServingStatus("temporal.api.workflowservice.v1.WorkflowService", healthpb.HealthCheckResponse_SERVING)
	return h
}

// Address is the frontend's host:port.
func (f *Frontend) Address() string { return f.address }

func (f *Frontend) spoil(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	method := info.FullMethod[lastSlash(info.FullMethod)+1:]
	if f.Before != nil {
		if err := f.Before(method); err != nil {
			return nil, serviceerror.ToStatus(err).Err()
		}
	}
	response, err := handler(ctx, req)
	if f.After != nil {
		if lost := f.After(method); lost != nil {
			return nil, serviceerror.ToStatus(lost).Err()
		}
	}
	if err != nil {
		return nil, serviceerror.ToStatus(err).Err()
	}
	return response, nil
}

func lastSlash(s string) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == '/' {
			return i
		}
	}
	return -1
}

// Forget drops a workflow, as Temporal does when its retention has passed.
func (f *Frontend) Forget(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.workflows, id)
	f.changed.Broadcast()
}

// Finish completes the open run of a workflow.
func (f *Frontend) Finish(id string) { f.close(id, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, "") }

func (f *Frontend) close(id string, status enumspb.WorkflowExecutionStatus, reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.latest(id); r != nil && r.open() {
		r.status, r.reason = status, reason
		f.changed.Broadcast()
	}
}

// latest is the latest run of a workflow, nil if there is none. f.mu is held.
func (f *Frontend) latest(id string) *run {
	runs := f.workflows[id]
	if len(runs) == 0 {
		return nil
	}
	return runs[len(runs)-1]
}

// find is a run by its ID, the latest if that is empty. f.mu is held.
func (f *Frontend) find(execution *commonpb.WorkflowExecution) (*run, error) {
	id := execution.GetWorkflowId()
	for _, r := range f.workflows[id] {
		if r.runID == execution.GetRunId() {
			return r, nil
		}
	}
	if r := f.latest(id); r != nil && execution.GetRunId() == "" {
		return r, nil
	}
	return nil, serviceerror.NewNotFoundf("workflow not found for ID: %s", id)
}

// Signals gives what was signaled to all runs of a workflow, in order.
func (f *Frontend) Signals(id string) []*commonpb.Payloads {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []*commonpb.Payloads
	for _, r := range f.workflows[id] {
		all = append(all, r.signals...)
	}
	return all
}

// GetSystemInfo is the SDK's first call.
func (f *Frontend) GetSystemInfo(context.Context, *workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{Capabilities: &workflowservice.GetSystemInfoResponse_Capabilities{}}, nil
}

// DescribeNamespace knows Namespace.
func (f *Frontend) DescribeNamespace(_ context.Context, req *workflowservice.DescribeNamespaceRequest) (*workflowservice.DescribeNamespaceResponse, error) {
	if req.GetNamespace() != Namespace {
		return nil, serviceerror.NewNamespaceNotFound(req.GetNamespace())
	}
	retention := f.Retention
	if retention == 0 {
		retention = 72 * time.Hour
	}
	return &workflowservice.DescribeNamespaceResponse{
		NamespaceInfo: &namespacepb.NamespaceInfo{Name: Namespace},
		Config:        &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(retention)},
	}, nil
}

// ListSearchAttributes gives the registered ones.
func (f *Frontend) ListSearchAttributes(context.Context, *operatorservice.ListSearchAttributesRequest) (*operatorservice.ListSearchAttributesResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	custom := make(map[string]enumspb.IndexedValueType)
	for name, typ := range f.attributes {
		custom[name] = typ
	}
	return &operatorservice.ListSearchAttributesResponse{CustomAttributes: custom}, nil
}

// AddSearchAttributes registers them.
func (f *Frontend) AddSearchAttributes(_ context.Context, req *operatorservice.AddSearchAttributesRequest) (*operatorservice.AddSearchAttributesResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, typ := range req.GetSearchAttributes() {
		f.attributes[name] = typ
	}
	return &operatorservice.AddSearchAttributesResponse{}, nil
}

// open opens another run of a workflow. f.mu is held.
func (f *Frontend) open(start *workflowservice.StartWorkflowExecutionRequest) *run {
	id := start.GetWorkflowId()
	f.runs++
	r := &run{id: id, runID: fmt.Sprintf("run-%d", f.runs), status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, start: start, began: time.Now()}
	f.workflows[id] = append(f.workflows[id], r)
	f.changed.Broadcast()
	return r
}

func (r *run) info() *workflowpb.WorkflowExecutionInfo {
	return &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: r.id, RunId: r.runID},
		Type:      r.start.GetWorkflowType(), Status: r.status, Memo: r.start.GetMemo(), StartTime: timestamppb.New(r.began),
	}
}

// Started is the request that opened the latest run of a workflow; nil if there
// is none.
func (f *Frontend) Started(id string) *workflowservice.StartWorkflowExecutionRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.latest(id); r != nil {
		return r.start
	}
	return nil
}
