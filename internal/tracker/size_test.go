package tracker_test

import (
	"fmt"
	"strings"
	"testing"

	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark-cdc/tidemark/activities"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/internal/tracker/trackertest"
	"github.com/tidemark-cdc/tidemark/workflows"
)

// What Temporal is given of a segment is far below its bounds (2 MiB for one
// payload, 2 KiB for one search attribute), with the longest names that there
// are, and whatever the number of tables.
func TestWhatTemporalIsGivenOfASegmentIsSmall(t *testing.T) {
	const request, payload = 64 << 10, 16 << 10
	f := &trackertest.Frontend{}
	tr := ready(t, f, nil)
	ref := trackertest.Ref("orders", 0, 4)
	ref.Pipeline = strings.Repeat("p", 63)
	ref.Lake = "s3://" + strings.Repeat("b", 63) + "/" + strings.Repeat("k", 512)
	ref.Rows, ref.Bytes, ref.TableCount = 1<<40, 1<<50, 10_000
	ref.Tables = nil
	for i := range segment.MaxTables {
		// Both names at their longest, of characters that are doubled in quotes
		// and escaped in JSON.
		name := `"` + strings.Repeat(`""`, 61) + fmt.Sprintf("%02d", i) + `"`
		ref.Tables = append(ref.Tables, name+"."+name)
	}
	at := segment.Location{Instance: strings.Repeat("i", 255), Address: strings.Repeat("a", 255) + ":65535"}
	if rec, err := tr.Start(bounded(t), ref, at); err != nil || !rec.Started {
		t.Fatalf("record is %+v, %v", rec, err)
	}
	if err := tr.Redirect(bounded(t), segment.Record{Ref: ref}, at); err != nil {
		t.Fatal(err)
	}
	started := f.Started(ref.WorkflowID())
	sizes := map[string]int{
		"the input":             proto.Size(started.GetInput()),
		"the memo":              proto.Size(started.GetMemo()),
		"the search attributes": proto.Size(started.GetSearchAttributes()),
		"summary and details":   proto.Size(started.GetUserMetadata()),
	}
	for i, signal := range f.Signals(ref.WorkflowID()) {
		sizes[fmt.Sprint("signal ", i)] = proto.Size(signal)
	}
	objects := []activities.Object{{Key: strings.Repeat("k", 1024), Rows: 1 << 40, Bytes: 1 << 50}}
	for what, value := range map[string]any{
		"an attempt's input":  activities.UploadInput{Version: 1, Ref: ref, Source: at, Again: true},
		"an attempt's result": activities.UploadResult{Version: 1, Objects: objects, Existed: true, Quarantined: true},
		"a heartbeat":         activities.Progress{Step: activities.StepLook, Rows: 1 << 40, Bytes: 1 << 50},
		"the result":          workflows.SegmentResult{Version: 1, Ref: ref, Objects: objects, Existed: true, Quarantined: true},
	} {
		encoded, err := converter.GetDefaultDataConverter().ToPayload(value)
		if err != nil {
			t.Fatal(err)
		}
		sizes[what] = proto.Size(encoded)
	}
	for what, size := range sizes {
		t.Logf("%s: %d bytes", what, size)
		if size == 0 || size > payload {
			t.Errorf("%s has %d bytes, want at most %d", what, size, payload)
		}
	}
	if size := proto.Size(started); size > request {
		t.Errorf("the whole request has %d bytes, want at most %d", size, request)
	}
	for name, value := range started.GetSearchAttributes().GetIndexedFields() {
		if size := len(value.GetData()); size > 2<<10 {
			t.Errorf("the search attribute %s has %d bytes", name, size)
		}
	}
}
