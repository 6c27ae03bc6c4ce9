package main

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/operator"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/internal/tracker"
	"github.com/tidemark-cdc/tidemark/workflows"
)

// waitingTemporal has segments that wait for a person, and takes updates.
type waitingTemporal struct {
	operator.Temporal // what is not below is not called
	runs              map[string]*workflowpb.WorkflowExecutionInfo
	// results are what the update quarantine gives; updates are those that came.
	results map[string]workflows.SegmentResult
	updates []string
	takes   time.Duration
}

// waitingAt gives a Temporal with segments that wait, and their positions.
func waitingAt(t *testing.T, lsns ...change.LSN) (*waitingTemporal, []change.Position) {
	t.Helper()
	payload := func(v any) *commonpb.Payload {
		p, err := converter.GetDefaultDataConverter().ToPayload(v)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	w := &waitingTemporal{runs: map[string]*workflowpb.WorkflowExecutionInfo{}, results: map[string]workflows.SegmentResult{}}
	var firsts []change.Position
	for _, lsn := range lsns {
		first := change.Position{Timeline: 1, LSN: lsn}
		ref := segment.Ref{Pipeline: "shop", SystemID: "71", Lake: "s3://b/p", First: first, Last: first, Follows: change.JustBefore(1, lsn), Day: 20000, Rows: 1, Bytes: 10, Digest: 1}
		w.runs[ref.WorkflowID()] = &workflowpb.WorkflowExecutionInfo{
			Execution: &commonpb.WorkflowExecution{WorkflowId: ref.WorkflowID(), RunId: "r"},
			Type:      &commonpb.WorkflowType{Name: workflows.SegmentName}, Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
			Memo:             &commonpb.Memo{Fields: map[string]*commonpb.Payload{tracker.MemoRef: payload(ref)}},
			SearchAttributes: &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{workflows.StateAttribute.GetName(): payload(workflows.Waiting)}},
		}
		firsts = append(firsts, first)
	}
	return w, firsts
}

func (w *waitingTemporal) operator(p *progress) *operator.Operator {
	return operator.New(w, operator.Config{Pipeline: "shop", TaskQueue: "q", Progress: p.doing})
}

func (w *waitingTemporal) ListWorkflow(context.Context, *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	return &workflowservice.ListWorkflowExecutionsResponse{Executions: slices.Collect(maps.Values(w.runs))}, nil
}

func (w *waitingTemporal) DescribeWorkflowExecution(_ context.Context, id, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if w.runs[id] == nil {
		return nil, serviceerror.NewNotFound("workflow not found")
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: w.runs[id]}, nil
}

func (w *waitingTemporal) GetWorkflowHistory(context.Context, string, string, bool, enumspb.HistoryEventFilterType) client.HistoryEventIterator {
	return noEvents{}
}

type noEvents struct{}

func (noEvents) HasNext() bool                          { return false }
func (noEvents) Next() (*historypb.HistoryEvent, error) { return nil, errors.New("no event is left") }

func (w *waitingTemporal) UpdateWorkflow(_ context.Context, o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	time.Sleep(w.takes)
	w.updates = append(w.updates, o.UpdateName+" "+o.WorkflowID)
	result, taken := w.results[o.WorkflowID]
	if !taken && o.UpdateName == workflows.QuarantineUpdate {
		return nil, serviceerror.NewUnavailable("no worker")
	}
	return updateHandle{result: result}, nil
}

type updateHandle struct {
	client.WorkflowUpdateHandle // what is not below is not called
	result                      workflows.SegmentResult
}

func (h updateHandle) Get(_ context.Context, v any) error {
	if r, ok := v.(*workflows.SegmentResult); ok {
		*r = h.result
	}
	return nil
}

func TestSegmentsThatAreRetriedAreToldAsJSON(t *testing.T) {
	w, firsts := waitingAt(t, 0x100, 0x200)
	var out bytes.Buffer
	if err := retrySegments(t.Context(), w.operator(nil), nil, true, steps{&out, true}); err != nil {
		t.Fatal(err)
	}
	for i, s := range toldSteps(t, out.String()) {
		want := step{What: "segment", Outcome: "retried", Text: "segment " + firsts[i].String() + " is tried again", Segment: firsts[i], WorkflowID: "tidemark/shop/" + firsts[i].String()}
		if s != want || w.updates[i] != "retry "+want.WorkflowID {
			t.Errorf("told %+v after %q, want %+v", s, w.updates[i], want)
		}
	}
	if len(w.updates) != 2 {
		t.Errorf("sent %q", w.updates)
	}
	out.Reset()
	none, _ := waitingAt(t)
	if err := retrySegments(t.Context(), none.operator(nil), nil, true, steps{&out, true}); err != nil || !slices.Equal(inShort(toldSteps(t, out.String())), []string{"segment nothing"}) {
		t.Errorf("told %q, %v", out.String(), err)
	}
}

func TestSegmentsThatGoToQuarantineAreToldAsJSONAndSoIsWhatFails(t *testing.T) {
	w, firsts := waitingAt(t, 0x100, 0x200, 0x300)
	w.results["tidemark/shop/"+firsts[0].String()] = workflows.SegmentResult{Quarantined: true}
	w.results["tidemark/shop/"+firsts[1].String()] = workflows.SegmentResult{}
	var out bytes.Buffer
	asked := 0
	err := quarantineSegments(t.Context(), w.operator(nil), nil, true, steps{&out, true}, func(s []operator.Segment) error { asked = len(s); return nil })
	if err == nil || !strings.Contains(err.Error(), "no worker") || asked != 3 {
		t.Errorf("asked about %d, error %v", asked, err)
	}
	list := toldSteps(t, out.String())
	if got, want := inShort(list), []string{"segment quarantined", "segment stored", "segment failed"}; !slices.Equal(got, want) {
		t.Fatalf("told %q, want %q", got, want)
	}
	if !strings.Contains(list[2].Text, "no worker") || list[2].Segment != firsts[2] {
		t.Errorf("the failure is told as %+v", list[2])
	}
	out.Reset()
	w.updates = nil
	err = quarantineSegments(t.Context(), w.operator(nil), []string{firsts[0].String()}, false, steps{&out, true}, func([]operator.Segment) error { return refuse("no") })
	if err == nil || out.Len() > 0 || len(w.updates) > 0 {
		t.Errorf("refused by a person: %v, told %q, sent %q", err, out.String(), w.updates)
	}
}

func TestAnUpdateThatTakesLongSaysWhatIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, firsts := waitingAt(t, 0x100)
		w.takes = 3 * time.Second
		sys, said := testConsole(false)
		p := sys.progress()
		var out bytes.Buffer
		err := retrySegments(t.Context(), w.operator(p), []string{firsts[0].String()}, false, steps{&out, false})
		p.end()
		if err != nil || out.String() != "segment "+firsts[0].String()+" is tried again\n" {
			t.Errorf("told %q, %v", out.String(), err)
		}
		if want := "tidemark: waiting for workflow tidemark/shop/" + firsts[0].String() + " to take the update retry, at most 5m0s (2s)\n"; said.String() != want {
			t.Errorf("said %q, want %q", said, want)
		}
	})
}
