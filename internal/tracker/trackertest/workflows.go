package trackertest

import (
	"context"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
)

// StartWorkflowExecution keeps the policies that a tracker asks for.
func (f *Frontend) StartWorkflowExecution(_ context.Context, req *workflowservice.StartWorkflowExecutionRequest) (*workflowservice.StartWorkflowExecutionResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range req.GetSearchAttributes().GetIndexedFields() {
		if _, ok := f.attributes[name]; !ok {
			return nil, serviceerror.NewInvalidArgumentf("Namespace %s has no mapping defined for search attribute %s", req.GetNamespace(), name)
		}
	}
	if last := f.latest(req.GetWorkflowId()); last != nil {
		if last.start.GetRequestId() == req.GetRequestId() {
			return &workflowservice.StartWorkflowExecutionResponse{RunId: last.runID}, nil
		}
		refuse := last.open() || req.GetWorkflowIdReusePolicy() == enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE ||
			req.GetWorkflowIdReusePolicy() == enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY &&
				last.status == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
		if refuse {
			return nil, serviceerror.NewWorkflowExecutionAlreadyStarted("Workflow execution already started", last.start.GetRequestId(), last.runID)
		}
	}
	return &workflowservice.StartWorkflowExecutionResponse{RunId: f.open(req).runID, Started: true}, nil
}

// DescribeWorkflowExecution gives status, type and memo.
func (f *Frontend) DescribeWorkflowExecution(_ context.Context, req *workflowservice.DescribeWorkflowExecutionRequest) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.find(req.GetExecution())
	if err != nil {
		return nil, err
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: r.info()}, nil
}

// ListWorkflowExecutions gives the runs of one pipeline that have not completed,
// which is all that a tracker asks for.
func (f *Frontend) ListWorkflowExecutions(_ context.Context, req *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	_, rest, _ := strings.Cut(req.GetQuery(), "TidemarkPipeline = '")
	pipeline, _, _ := strings.Cut(rest, "'")
	f.mu.Lock()
	defer f.mu.Unlock()
	response := &workflowservice.ListWorkflowExecutionsResponse{}
	for id, runs := range f.workflows {
		for _, r := range runs {
			if strings.HasPrefix(id, "tidemark/"+pipeline+"/") && r.status != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
				response.Executions = append(response.Executions, r.info())
			}
		}
	}
	return response, nil
}

// SignalWorkflowExecution refuses a closed run.
func (f *Frontend) SignalWorkflowExecution(_ context.Context, req *workflowservice.SignalWorkflowExecutionRequest) (*workflowservice.SignalWorkflowExecutionResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.find(req.GetWorkflowExecution())
	if err != nil {
		return nil, err
	}
	if !r.open() {
		return nil, serviceerror.NewNotFound("workflow execution already completed")
	}
	r.signals = append(r.signals, req.GetInput())
	return &workflowservice.SignalWorkflowExecutionResponse{}, nil
}

// TerminateWorkflowExecution closes the open run.
func (f *Frontend) TerminateWorkflowExecution(_ context.Context, req *workflowservice.TerminateWorkflowExecutionRequest) (*workflowservice.TerminateWorkflowExecutionResponse, error) {
	f.close(req.GetWorkflowExecution().GetWorkflowId(), enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, req.GetReason())
	return &workflowservice.TerminateWorkflowExecutionResponse{}, nil
}

// RequestCancelWorkflowExecution closes the open run, as if its workflow had
// heeded the request.
func (f *Frontend) RequestCancelWorkflowExecution(_ context.Context, req *workflowservice.RequestCancelWorkflowExecutionRequest) (*workflowservice.RequestCancelWorkflowExecutionResponse, error) {
	f.close(req.GetWorkflowExecution().GetWorkflowId(), enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, "")
	return &workflowservice.RequestCancelWorkflowExecutionResponse{}, nil
}

// ResetWorkflowExecution closes a run that is open and opens another.
func (f *Frontend) ResetWorkflowExecution(_ context.Context, req *workflowservice.ResetWorkflowExecutionRequest) (*workflowservice.ResetWorkflowExecutionResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.find(req.GetWorkflowExecution())
	if err != nil {
		return nil, err
	}
	if r.open() {
		r.status, r.reason = enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, req.GetReason()
	}
	return &workflowservice.ResetWorkflowExecutionResponse{RunId: f.open(r.start).runID}, nil
}

// GetWorkflowExecutionHistory gives the closing event of a run, for which it
// waits when it is asked to.
func (f *Frontend) GetWorkflowExecutionHistory(ctx context.Context, req *workflowservice.GetWorkflowExecutionHistoryRequest) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	stop := context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.changed.Broadcast()
	})
	defer stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		r, err := f.find(req.GetExecution())
		if err != nil {
			return nil, err
		}
		deaf := f.Deaf && req.GetWaitNewEvent()
		if !r.open() && !deaf {
			return &workflowservice.GetWorkflowExecutionHistoryResponse{History: &historypb.History{Events: []*historypb.HistoryEvent{r.closing()}}}, nil
		}
		if !req.GetWaitNewEvent() {
			return &workflowservice.GetWorkflowExecutionHistoryResponse{History: &historypb.History{}}, nil
		}
		if ctx.Err() != nil || f.closed {
			return nil, serviceerror.NewCanceled("the caller has gone")
		}
		f.changed.Wait()
	}
}

// closing is the last event of a closed run.
func (r *run) closing() *historypb.HistoryEvent {
	e := &historypb.HistoryEvent{EventId: 11}
	switch r.status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		e.EventType = enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED
		e.Attributes = &historypb.HistoryEvent_WorkflowExecutionCompletedEventAttributes{
			WorkflowExecutionCompletedEventAttributes: &historypb.WorkflowExecutionCompletedEventAttributes{}}
	case enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		e.EventType = enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED
		e.Attributes = &historypb.HistoryEvent_WorkflowExecutionCanceledEventAttributes{
			WorkflowExecutionCanceledEventAttributes: &historypb.WorkflowExecutionCanceledEventAttributes{}}
	case enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:
		e.EventType = enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED
		e.Attributes = &historypb.HistoryEvent_WorkflowExecutionFailedEventAttributes{
			WorkflowExecutionFailedEventAttributes: &historypb.WorkflowExecutionFailedEventAttributes{Failure: &failurepb.Failure{Message: r.reason}}}
	default:
		e.EventType = enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED
		e.Attributes = &historypb.HistoryEvent_WorkflowExecutionTerminatedEventAttributes{
			WorkflowExecutionTerminatedEventAttributes: &historypb.WorkflowExecutionTerminatedEventAttributes{Reason: r.reason}}
	}
	return e
}

// Fail ends the open run of a workflow with a failure.
func (f *Frontend) Fail(id, message string) {
	f.close(id, enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, message)
}
