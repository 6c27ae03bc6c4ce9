package workflows_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/workflows"
)

func TestTheSummaryIsOneLine(t *testing.T) {
	ref := testRef()
	want := "orders · 0/16B3748 to 0/16B9000 · 12,345 rows · 3.0 MiB · public.items, public.orders"
	if got := workflows.Summary(ref); got != want {
		t.Errorf("summary is %q, want %q", got, want)
	}
	ref.TableCount = 40
	if got := workflows.Summary(ref); !strings.HasSuffix(got, "public.orders and 38 tables more") {
		t.Errorf("summary is %q", got)
	}
}

func TestWhatTemporalIsShownIsBounded(t *testing.T) {
	ref := testRef()
	ref.Pipeline = strings.Repeat("ü", 200)
	ref.Tables = nil
	for i := range 3 * segment.MaxTables {
		ref.Tables = append(ref.Tables, fmt.Sprintf("%s.%d", strings.Repeat("表", 130), i))
	}
	ref.TableCount = 5000
	if tables, _ := workflows.Attributes(testRef()).GetKeywordList(workflows.TablesAttribute); len(tables) != 2 {
		t.Errorf("of two short names %q are shown", tables)
	}

	summary := workflows.Summary(ref)
	if len(summary) > 400 || !utf8.ValidString(summary) || !strings.Contains(summary, "tables more") {
		t.Errorf("summary of %d bytes: %q", len(summary), summary)
	}
	attributes := workflows.Attributes(ref)
	tables, _ := attributes.GetKeywordList(workflows.TablesAttribute)
	// The server's default bound on one attribute's payload.
	if text, err := json.Marshal(tables); err != nil || len(text) > 2048 || len(text) < 1700 {
		t.Errorf("%d tables in %d bytes of JSON, %v", len(tables), len(text), err)
	}
	pipeline, _ := attributes.GetKeyword(workflows.PipelineAttribute)
	for _, value := range append(tables, pipeline) {
		if len(value) > 255 || !utf8.ValidString(value) {
			t.Errorf("a value of %d bytes: %q", len(value), value)
		}
	}
	if attributes.Size() != len(workflows.AttributeTypes()) {
		t.Errorf("%d attributes are set, %d are registered", attributes.Size(), len(workflows.AttributeTypes()))
	}
}
