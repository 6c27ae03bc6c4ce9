package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/client"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/workflows"
)

// refused is what a worker of the binary that is built for this test alone does
// not understand (internal/pgoutput/type_refusing.go), private what stands in
// the same row behind the bytes that an error may show.
const (
	refused = "a message that no decoder understands"
	private = "nobody reads this in an error"
)

// refusingWorker starts a streamer, and a worker that does not understand the
// marker; whatever is started after them does. It returns when rows are streamed.
func refusingWorker(t *testing.T) (h *harness.Harness, streamer, worker *harness.Proc) {
	t.Helper()
	h = harness.New(t, harness.Options{Postgres: 18, TemporalMemory: true, Settings: pipeline.Settings{"segment.max_age": "200ms"}})
	streamer = h.Streamer()
	good := h.Pipeline.Binary
	h.Build("tidemark_refuse_marker")
	worker = h.Worker()
	h.Pipeline.Binary = good
	streamer.WaitStreaming()
	return h, streamer, worker
}

// Two segments that no decoder understands, and others between and after them.
// One is put into quarantine; the other is uploaded after all, once the worker
// is one that understands it.
//
// On one version of Postgres: the message is the same on each.
func TestAMessageThatNoDecoderUnderstandsStopsItsOwnSegmentOnly(t *testing.T) {
	h, s, refusing := refusingWorker(t)
	c := dialTemporal(t, h)
	rows := events{h: h}

	rows.goOn(t)
	h.WaitAck()
	first := rows.refuse(t, s, c, 1)
	stands := s.WaitAckBefore(first.First)
	for range 3 {
		rows.goOn(t)
	}
	if now := h.AckLSN(); now != stands || now > first.First.LSN {
		t.Fatalf("the ack has moved from %s to %s; the segment that waits begins at %s", stands, now, first.First)
	}
	second := rows.refuse(t, s, c, 2)
	rows.goOn(t)

	update(t, c, first, workflows.QuarantineUpdate)
	h.Eventually(harness.Bound, func() string {
		if now := h.AckLSN(); now <= first.Last.LSN {
			return fmt.Sprintf("%s is in quarantine, and the ack still stands at %s", first.First, now)
		}
		return ""
	})
	if now := s.WaitAckBefore(second.First); now > second.First.LSN {
		t.Fatalf("the ack %s has passed %s, which waits", now, second.First)
	}
	inQuarantine(t, h)

	refusing.Stop()
	h.Worker()
	update(t, c, second, workflows.RetryUpdate)
	rows.inLake++
	h.WaitAck()
	if got := h.RowsInLake().Total(); got != rows.inLake {
		t.Errorf("the lake has %d rows, want %d: all but the one in quarantine", got, rows.inLake)
	}
	h.Sound()
	inQuarantine(t, h)
	s.Stop()
}

// events inserts rows, and counts those that the lake is to have.
type events struct {
	h          *harness.Harness
	id, inLake int64
}

func (r *events) insert(payload string) {
	r.id++
	r.h.SQL("insert into public.events values ($1, 'kind', $2)", r.id, payload)
}

// goOn inserts a row and waits until it is in the lake.
func (r *events) goOn(t *testing.T) {
	t.Helper()
	r.insert("understood")
	r.inLake++
	r.h.Eventually(harness.Bound, func() string {
		if got := r.h.RowsInLake().Total(); got != r.inLake {
			return fmt.Sprintf("the lake has %d of %d rows", got, r.inLake)
		}
		return ""
	})
}

// refuse inserts a row that is refused, a segment of its own, and waits until
// its workflow waits, which is the n-th in flight then. The workflow has to say
// why.
func (r *events) refuse(t *testing.T, s *harness.Proc, c client.Client, n int) segment.Ref {
	t.Helper()
	r.insert(refused + strings.Repeat(" ", 64) + private)
	var ref segment.Ref
	var details string
	s.WaitStatus(func(st harness.Status) string {
		if len(st.InFlight) != n {
			return fmt.Sprintf("%d segments are in flight, waiting for %d", len(st.InFlight), n)
		}
		ref = st.InFlight[n-1].Ref
		described, err := c.DescribeWorkflow(t.Context(), ref.WorkflowID(), "")
		if err != nil {
			return err.Error()
		}
		state, _ := described.TypedSearchAttributes.GetKeyword(workflows.StateAttribute)
		if details, err = detailsOf(t.Context(), c, ref); err != nil {
			return err.Error() // a worker has to answer, and may have no time
		}
		if state != string(workflows.Waiting) || details == "" {
			return fmt.Sprintf("the workflow is %s, waiting for waiting; its details: %s", state, details)
		}
		return ""
	})
	if ref.Rows != 1 {
		t.Fatalf("the segment has %d rows, want the refused one alone", ref.Rows)
	}
	// An insert: its type, the table's OID, a new image of three columns.
	begins := fmt.Sprintf("49%08x4e0003", harness.Scalar[uint32](r.h, "select 'public.events'::regclass::oid"))
	for _, want := range []string{"waits for you", "table public.events", ref.First.String(), begins, workflows.RetryUpdate, workflows.QuarantineUpdate} {
		if !strings.Contains(details, want) {
			t.Errorf("the details lack %q:\n%s", want, details)
		}
	}
	for _, secret := range []string{private, fmt.Sprintf("%x", private), refused} {
		if strings.Contains(details, secret) {
			t.Errorf("the details show %q of the row:\n%s", secret, details)
		}
	}
	return ref
}

// metadataQuery is the query that the SDK answers for every workflow.
const metadataQuery = "__temporal_workflow_metadata"

// detailsOf are a workflow's current details, asked for as the UI does it.
func detailsOf(ctx context.Context, c client.Client, ref segment.Ref) (string, error) {
	value, err := c.QueryWorkflow(ctx, ref.WorkflowID(), "", metadataQuery)
	if err != nil {
		return "", err
	}
	var metadata sdkpb.WorkflowMetadata
	if err := value.Get(&metadata); err != nil {
		return "", err
	}
	return metadata.GetCurrentDetails(), nil
}

// update sends an update and waits for its end.
func update(t *testing.T, c client.Client, ref segment.Ref, name string) {
	t.Helper()
	handle, err := c.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{
		WorkflowID: ref.WorkflowID(), UpdateName: name, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(t.Context(), nil)
	}
	if err != nil {
		t.Fatalf("update %s of segment %s: %v", name, ref.First, err)
	}
}

// inQuarantine fails the test unless one row is in quarantine, with all its
// bytes, and tidemark verify says so and is content.
func inQuarantine(t *testing.T, h *harness.Harness) {
	t.Helper()
	messages, err := h.Lake().QuarantinedMessages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(messages) != 1 || !bytes.Contains(messages[0], []byte(private)) {
		t.Errorf("in quarantine are %q", messages)
	}
	text := h.Verb("verify")
	if text.Code != 0 || !strings.Contains(text.Stdout, "1 in quarantine (1 rows)") {
		t.Errorf("tidemark verify ended with status %d and says:\n%s%s", text.Code, text.Stdout, text.Stderr)
	}
	var report lake.Report
	if err := json.Unmarshal([]byte(h.Verb("verify", "--json").Stdout), &report); err != nil {
		t.Fatal(err)
	}
	var quarantined, rows int64
	for _, d := range report.Days {
		quarantined, rows = quarantined+d.Quarantined, rows+d.QuarantinedRows
	}
	if quarantined != 1 || rows != 1 || len(report.Chains) != 1 || report.Chains[0].Objects != report.Objects {
		t.Errorf("tidemark verify --json counts %d quarantined segments with %d rows, and the chains %+v of %d objects", quarantined, rows, report.Chains, report.Objects)
	}
}
