package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/temporalproto"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/leaktest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/internal/tracker"
	"github.com/tidemark-cdc/tidemark/workflows"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// fakeTemporal knows runs, the histories of some, and pending attempts.
type fakeTemporal struct {
	client.Client // what is not below is not called
	runs          []*workflowpb.WorkflowExecutionInfo
	pending       map[string]*workflowpb.PendingActivityInfo
	histories     map[string]*historypb.History
	// now has what a description says that visibility does not know yet.
	now     map[string]*workflowpb.WorkflowExecutionInfo
	queries []string
	fail    error
}

// ListWorkflow answers in pages of two, whatever the query; of that it heeds the
// type, and whether the run is open.
func (f *fakeTemporal) ListWorkflow(_ context.Context, req *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	if f.fail != nil {
		return nil, f.fail
	}
	f.queries = append(f.queries, req.GetQuery())
	var fit []*workflowpb.WorkflowExecutionInfo
	for _, r := range f.runs {
		open := r.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
		if strings.Contains(req.GetQuery(), "WorkflowType = '"+r.GetType().GetName()+"'") && (open || !strings.Contains(req.GetQuery(), "ExecutionStatus = 'Running'")) {
			fit = append(fit, r)
		}
	}
	from := len(req.GetNextPageToken())
	to := min(from+2, len(fit))
	response := &workflowservice.ListWorkflowExecutionsResponse{Executions: fit[from:to]}
	if to < len(fit) {
		response.NextPageToken = make([]byte, to)
	}
	return response, nil
}

func (f *fakeTemporal) DescribeWorkflowExecution(_ context.Context, id, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	info := f.now[id]
	for _, r := range f.runs {
		if f.now[id] == nil && r.GetExecution().GetWorkflowId() == id && (info == nil || info.GetStartTime().AsTime().Before(r.GetStartTime().AsTime())) {
			info = r
		}
	}
	if info == nil {
		return nil, serviceerror.NewNotFound("workflow not found")
	}
	response := &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: info}
	if p := f.pending[id]; p != nil {
		response.PendingActivities = []*workflowpb.PendingActivityInfo{p}
	}
	return response, nil
}

type events struct{ left []*historypb.HistoryEvent }

func (e *events) HasNext() bool { return len(e.left) > 0 }
func (e *events) Next() (*historypb.HistoryEvent, error) {
	next := e.left[0]
	e.left = e.left[1:]
	return next, nil
}

func (f *fakeTemporal) GetWorkflowHistory(_ context.Context, id, _ string, _ bool, _ enumspb.HistoryEventFilterType) client.HistoryEventIterator {
	return &events{left: f.histories[id].GetEvents()}
}

func refAt(n uint64, tables ...string) segment.Ref {
	at := func(ordinal uint64) change.Position {
		return change.Position{Timeline: 1, LSN: 0x1000 + change.LSN(n), Ordinal: ordinal}
	}
	return segment.Ref{Pipeline: "shop", SystemID: "7", Lake: "s3://b/p", First: at(0), Last: at(4), Follows: change.JustBefore(1, at(0).LSN),
		Day: 20000, Rows: 5, Bytes: 500, Digest: 7, Tables: tables, TableCount: len(tables)}
}

func payload(t *testing.T, v any) *commonpb.Payload {
	t.Helper()
	p, err := converter.GetDefaultDataConverter().ToPayload(v)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// add makes a run known, the n-th that is started.
func (f *fakeTemporal) add(t *testing.T, workflowType string, ref segment.Ref, status enumspb.WorkflowExecutionStatus, state workflows.State) *workflowpb.WorkflowExecutionInfo {
	t.Helper()
	id := ref.WorkflowID()
	if workflowType == workflows.ReplayName {
		id = workflows.ReplayID(ref)
	}
	info := &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: "run-" + string(rune('a'+len(f.runs)))},
		Type:      &commonpb.WorkflowType{Name: workflowType}, Status: status,
		StartTime:        timestamppb.New(time.Date(2026, 1, 2, 3, len(f.runs), 0, 0, time.UTC)),
		Memo:             &commonpb.Memo{Fields: map[string]*commonpb.Payload{tracker.MemoRef: payload(t, ref)}},
		SearchAttributes: &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{workflows.StateAttribute.GetName(): payload(t, string(state))}},
	}
	f.runs = append(f.runs, info)
	return info
}

const (
	open      = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	completed = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	killed    = enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED
)

// pipeline has a segment in every state, not in stream order.
func pipeline(t *testing.T) (*fakeTemporal, *Operator) {
	t.Helper()
	f := &fakeTemporal{pending: map[string]*workflowpb.PendingActivityInfo{}, histories: map[string]*historypb.History{}, now: map[string]*workflowpb.WorkflowExecutionInfo{}}
	f.add(t, workflows.SegmentName, refAt(5, "public.a"), open, workflows.Waiting)
	f.add(t, workflows.SegmentName, refAt(1, "public.a"), completed, workflows.Done)
	f.add(t, workflows.SegmentName, refAt(2, "public.b"), killed, workflows.Uploading)
	f.add(t, workflows.SegmentName, refAt(2, "public.b"), completed, workflows.Quarantined)
	f.add(t, workflows.SegmentName, refAt(3, "public.a", "public.b"), open, workflows.Uploading)
	f.add(t, workflows.SegmentName, refAt(4, "public.c"), open, workflows.Uploading)
	f.add(t, workflows.SegmentName, refAt(6), killed, workflows.Uploading)
	f.pending[refAt(3).WorkflowID()] = &workflowpb.PendingActivityInfo{Attempt: 1}
	f.pending[refAt(4).WorkflowID()] = &workflowpb.PendingActivityInfo{Attempt: 3, LastFailure: &failurepb.Failure{Message: "access denied"}}
	f.histories[refAt(5).WorkflowID()] = &historypb.History{Events: []*historypb.HistoryEvent{{
		EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED,
		Attributes: &historypb.HistoryEvent_ActivityTaskFailedEventAttributes{ActivityTaskFailedEventAttributes: &historypb.ActivityTaskFailedEventAttributes{
			Failure: &failurepb.Failure{Message: "activity error", Cause: &failurepb.Failure{Message: "no decoder understands it"}}}},
	}}}
	return f, New(f, Config{Pipeline: "shop", Address: "here:7233", Namespace: "ns", TaskQueue: "q", UI: "http://ui/"})
}

func TestASegmentThatWasGivenUpIsNotCalledBroken(t *testing.T) {
	f, o := pipeline(t)
	f.add(t, workflows.SegmentName, refAt(7), killed, workflows.Uploading)
	f.histories[refAt(7).WorkflowID()] = &historypb.History{Events: []*historypb.HistoryEvent{{
		EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
		Attributes: &historypb.HistoryEvent_WorkflowExecutionTerminatedEventAttributes{WorkflowExecutionTerminatedEventAttributes: &historypb.WorkflowExecutionTerminatedEventAttributes{
			Reason: segment.GivenUpReason + "the slot was advanced"}},
	}}}
	for name, tc := range map[string]struct {
		states []State
		want   []string
	}{
		"all":      {nil, []string{"1 done", "2 quarantined", "3 running", "4 retrying", "5 waiting", "6 broken", "7 given-up"}},
		"broken":   {[]State{Broken}, []string{"6 broken"}},
		"given up": {[]State{GivenUp}, []string{"7 given-up"}},
	} {
		if got, _, err := o.List(t.Context(), Filter{States: tc.states}); err != nil || !slices.Equal(shown(got), tc.want) {
			t.Errorf("%s: got %q, %v, want %q", name, shown(got), err, tc.want)
		}
	}
	d, err := o.Show(t.Context(), refAt(7).First)
	if err != nil || d.State != GivenUp || !strings.Contains(d.Ended, "the slot was advanced") {
		t.Errorf("shown as %+v, %v", d, err)
	}
}

// shown is a list in short: ordinals of the segments' LSNs, with their states.
func shown(segments []Segment) []string {
	var list []string
	for _, s := range segments {
		list = append(list, string(rune('0'+int(s.Ref.First.LSN-0x1000)))+" "+string(s.State))
	}
	return list
}

func TestSegmentsAreListedInStreamOrderByTheirLatestRun(t *testing.T) {
	day := change.Day(20000)
	bound := func(text string) Bound {
		b, err := ParseBound(text)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for name, tc := range map[string]struct {
		filter Filter
		want   []string
		query  string
	}{
		"all":       {Filter{}, []string{"1 done", "2 quarantined", "3 running", "4 retrying", "5 waiting", "6 broken"}, "TidemarkPipeline = 'shop'"},
		"retrying":  {Filter{States: []State{Retrying}}, []string{"4 retrying"}, "ExecutionStatus = 'Running'"},
		"open":      {Filter{States: []State{Running, Waiting}}, []string{"3 running", "5 waiting"}, "ExecutionStatus = 'Running'"},
		"closed":    {Filter{States: []State{Done, Broken}}, []string{"1 done", "6 broken"}, ""},
		"table":     {Filter{Table: "public.a"}, []string{"1 done", "3 running", "5 waiting"}, "TidemarkTables = 'public.a'"},
		"odd table": {Filter{Table: `public."A"`}, nil, ""},
		"day":       {Filter{Day: &day}, []string{"1 done", "2 quarantined", "3 running", "4 retrying", "5 waiting", "6 broken"}, "TidemarkDay = '2024-10-04'"},
		"from":      {Filter{Range: Range{From: bound("0/1005")}}, []string{"5 waiting", "6 broken"}, ""},
		"to":        {Filter{Range: Range{To: bound(refAt(2).First.String())}}, []string{"1 done", "2 quarantined"}, ""},
		"within":    {Filter{Range: Range{From: bound(refAt(3).Last.String()), To: bound("0/1004")}}, []string{"3 running", "4 retrying"}, ""},
		"the last":  {Filter{Limit: 2}, []string{"5 waiting", "6 broken"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f, o := pipeline(t)
			got, more, err := o.List(t.Context(), tc.filter)
			if err != nil || !slices.Equal(shown(got), tc.want) {
				t.Errorf("got %q, %v, want %q", shown(got), err, tc.want)
			}
			if wantMore := map[bool]int{true: 4}[tc.filter.Limit == 2]; more != wantMore {
				t.Errorf("%d more", more)
			}
			if !strings.Contains(f.queries[0], tc.query) || !strings.Contains(f.queries[0], "WorkflowType = 'Segment'") {
				t.Errorf("asked for %q", f.queries[0])
			}
		})
	}
}

func TestAListSaysHowFarItHasCome(t *testing.T) {
	f, o := pipeline(t)
	var mu sync.Mutex
	var said []string
	o.cfg.Progress = func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, fmt.Sprintf(format, args...))
	}
	if _, _, err := o.List(t.Context(), Filter{States: []State{Running, Broken}}); err != nil {
		t.Fatal(err)
	}
	pages := len(f.runs)/2 + len(f.runs)%2
	var want []string
	for i := range pages {
		want = append(want, fmt.Sprintf("asking Temporal for the workflows of pipeline shop: %d so far", 2*i))
	}
	for _, n := range []int{1, 2, 3, 4} { // the open ones and the broken one
		want = append(want, fmt.Sprintf("asking Temporal how segments stand: %d of 4", n))
	}
	if !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
}

func TestAListSaysWhyAndWhetherItWasReplayed(t *testing.T) {
	f, o := pipeline(t)
	f.add(t, workflows.ReplayName, refAt(2), completed, workflows.Done)
	got, _, err := o.List(t.Context(), Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if !got[1].Replayed || got[0].Replayed {
		t.Errorf("replayed: %+v", got[:2])
	}
	if got[3].LastError != "access denied" || got[3].Attempt != 3 || got[4].LastError != "no decoder understands it" {
		t.Errorf("errors: %+v", got[3:5])
	}
}

// Visibility lags behind: what it calls running may have completed.
func TestAnOpenSegmentIsAsItIsDescribed(t *testing.T) {
	f, o := pipeline(t)
	other := &fakeTemporal{}
	f.now[refAt(3).WorkflowID()] = other.add(t, workflows.SegmentName, refAt(3), completed, workflows.Done)
	got, _, err := o.List(t.Context(), Filter{States: []State{Running}})
	if err != nil || len(got) != 0 {
		t.Errorf("got %q, %v", shown(got), err)
	}
}

func TestASegmentIsFoundWithItsPendingAttempt(t *testing.T) {
	f, o := pipeline(t)
	begun := time.Date(2026, 1, 2, 4, 0, 0, 0, time.UTC)
	f.pending[refAt(3).WorkflowID()] = &workflowpb.PendingActivityInfo{Attempt: 1, State: enumspb.PENDING_ACTIVITY_STATE_STARTED, LastStartedTime: timestamppb.New(begun)}
	s, pending, err := o.Find(t.Context(), refAt(4).First)
	if err != nil || s.State != Retrying || s.Attempt != 3 || s.LastError != "access denied" || pending == nil || !pending.Began.IsZero() {
		t.Errorf("the one that is retried: %+v, %+v, %v", s, pending, err)
	}
	s, pending, err = o.Find(t.Context(), refAt(3).First)
	if err != nil || s.State != Running || pending == nil || !pending.Began.Equal(begun) {
		t.Errorf("the one that runs: %+v, %+v, %v", s, pending, err)
	}
	s, pending, err = o.Find(t.Context(), refAt(5).First)
	if err != nil || s.State != Waiting || s.LastError != "no decoder understands it" || pending != nil {
		t.Errorf("the one that waits: %+v, %+v, %v", s, pending, err)
	}
	if _, _, err := o.Find(t.Context(), refAt(9).First); !errors.Is(err, ErrUnknown) {
		t.Errorf("one that is not there: %v", err)
	}
	if len(f.queries) > 0 {
		t.Errorf("visibility was asked: %q", f.queries)
	}
}

func TestWhatIsNoSegmentIsPassedOver(t *testing.T) {
	f, o := pipeline(t)
	f.add(t, workflows.SegmentName, refAt(7), open, workflows.Uploading).Memo = nil
	if got, _, err := o.List(t.Context(), Filter{}); err != nil || len(got) != 6 {
		t.Errorf("got %q, %v", shown(got), err)
	}
}

func TestAFailureSaysWhichTemporalWasAsked(t *testing.T) {
	f, o := pipeline(t)
	f.fail = serviceerror.NewUnavailable("connection refused")
	_, _, err := o.List(t.Context(), Filter{})
	for _, want := range []string{"pipeline shop", "here:7233", "namespace ns", "connection refused", "temporal.address"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	if _, err := o.Show(t.Context(), refAt(9).First); !errors.Is(err, ErrUnknown) {
		t.Errorf("a segment that there is not: %v", err)
	}
}

// The histories that package workflows keeps are those of a real server.
func TestASegmentIsShownAsItsHistoryTells(t *testing.T) {
	for name, tc := range map[string]struct {
		status   enumspb.WorkflowExecutionStatus
		state    workflows.State
		attempts int32
		source   string
		object   string
		err      string
		want     State
	}{
		"stored":      {completed, workflows.Done, 1, "first", "20", "", Done},
		"retried":     {completed, workflows.Done, 3, "first", "20", "as the script says", Done},
		"moved":       {completed, workflows.Done, 2, "next-1", "20", "", Done},
		"quarantined": {completed, workflows.Quarantined, 2, "first", "_quarantine/", "as the script says", Quarantined},
		"waiting":     {open, workflows.Waiting, 1, "first", "", "as the script says", Waiting},
	} {
		t.Run(name, func(t *testing.T) {
			f, o := pipeline(t)
			ref := refAt(9)
			f.add(t, workflows.SegmentName, ref, tc.status, tc.state)
			body, err := os.ReadFile(filepath.Join("..", "..", "workflows", "testdata", name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			var history historypb.History
			if err := (temporalproto.CustomJSONUnmarshalOptions{}).Unmarshal(body, &history); err != nil {
				t.Fatal(err)
			}
			f.histories[ref.WorkflowID()] = &history
			d, err := o.Show(t.Context(), ref.First)
			if err != nil {
				t.Fatal(err)
			}
			if d.State != tc.want || d.Attempts != tc.attempts || d.Source.Instance != tc.source || d.LastError != tc.err {
				t.Errorf("got %+v", d)
			}
			if tc.object == "" && len(d.Objects) != 0 || tc.object != "" && (len(d.Objects) != 1 || !strings.HasPrefix(d.Objects[0].Key, tc.object)) {
				t.Errorf("objects are %+v", d.Objects)
			}
			if want := "http://ui/namespaces/ns/workflows/tidemark%2Fshop%2F" + ref.First.String() + "/"; !strings.HasPrefix(d.Link, want) {
				t.Errorf("the link is %s, want %s…", d.Link, want)
			}
		})
	}
}

func TestASegmentIsNamedByItsPositionOrItsWorkflowID(t *testing.T) {
	_, o := pipeline(t)
	first := refAt(3).First
	for _, text := range []string{first.String(), refAt(3).WorkflowID()} {
		if got, err := o.ParseID(text); err != nil || got != first {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "x", "tidemark/other/" + first.String(), refAt(3).WorkflowID() + "/replay", "0/1003"} {
		if got, err := o.ParseID(text); err == nil {
			t.Errorf("%q is taken for %s", text, got)
		}
	}
}

func TestARangeHoldsWhatReachesIntoIt(t *testing.T) {
	at := func(timeline uint32, lsn change.LSN, n uint64) change.Position {
		return change.Position{Timeline: change.Timeline(timeline), LSN: lsn, Ordinal: n}
	}
	for _, tc := range []struct {
		from, to string
		want     bool
	}{
		{"", "", true},
		{"0/200", "", true}, {"0/201", "", false}, {"0/100", "0/100", true}, {"", "0/FF", false},
		{at(1, 0x200, 5).String(), "", true}, {at(1, 0x200, 6).String(), "", false}, {"", at(1, 0x100, 0).String(), true},
		// An LSN is one on every timeline; a position is on its own.
		{at(2, 0, 0).String(), "", false}, {"", at(2, 0, 0).String(), true},
	} {
		from, err1 := ParseBound(tc.from)
		to, err2 := ParseBound(tc.to)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		if got := (Range{from, to}).Meets(at(1, 0x100, 0), at(1, 0x200, 5)); got != tc.want {
			t.Errorf("from %q to %q: %v", tc.from, tc.to, got)
		}
	}
	for _, text := range []string{"x", "0/x", "1/2/3", "00000001-0", "-"} {
		if _, err := ParseBound(text); err == nil {
			t.Errorf("%q is taken for an end of a range", text)
		}
	}
}
