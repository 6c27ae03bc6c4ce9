package segment_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/internal/segment/segmenttest"
)

func example(n int) segment.Ref {
	return segmenttest.RefOf(segmenttest.Before(0x1000), segmenttest.NewMaker(0x1000).Mixed(n))
}

// TestRefGolden holds the JSON that Temporal's histories are full of.
func TestRefGolden(t *testing.T) {
	ref := segment.Ref{
		Pipeline: "orders", SystemID: "7311111111111111111", Lake: "s3://bucket/prefix",
		First:   change.Position{Timeline: 1, LSN: 0x16B374D848},
		Last:    change.Position{Timeline: 1, LSN: 0x16B374FFFF, Ordinal: 30},
		Follows: change.Position{Timeline: 1, LSN: 0x16B3740000, Ordinal: 2},
		Day:     19783, Rows: 10000, Bytes: 1 << 20, Digest: 0x00ABCDEF01234567,
		Tables: []string{"public.orders", `public."odd name"`}, TableCount: 2,
	}
	const want = `{"pipeline":"orders","system_id":"7311111111111111111","lake":"s3://bucket/prefix",` +
		`"first":"00000001-00000016B374D848-0000000000","last":"00000001-00000016B374FFFF-000000001E",` +
		`"follows":"00000001-00000016B3740000-0000000002","day":"2024-03-01","rows":10000,"bytes":1048576,` +
		`"digest":"00abcdef01234567","tables":["public.orders","public.\"odd name\""],"table_count":2}`
	b, err := json.Marshal(ref)
	if err != nil || string(b) != want {
		t.Errorf("%s, %v; want\n%s", b, err, want)
	}
	var back segment.Ref
	if err := json.Unmarshal([]byte(want), &back); err != nil || !reflect.DeepEqual(back, ref) {
		t.Errorf("%+v, %v", back, err)
	}
	if got, want := ref.WorkflowID(), "tidemark/orders/00000001-00000016B374D848-0000000000"; got != want {
		t.Errorf("workflow ID %s, want %s", got, want)
	}
	if got := ref.Ticket(); got != (segment.Ticket{Pipeline: "orders", First: ref.First, Last: ref.Last, Digest: ref.Digest}) {
		t.Errorf("ticket %+v", got)
	}
}

func TestRefStaysSmallWhateverTheSegment(t *testing.T) {
	m := segmenttest.NewMaker(0x1000)
	var cs []change.Change
	for i := range 10_000 {
		cs = append(cs, m.Change(change.Insert, segmenttest.Relation(uint32(i)), segmenttest.Raw('I', 9, i)))
	}
	ref := segmenttest.RefOf(segmenttest.Before(0x1000), cs)
	b, err := json.Marshal(ref)
	if err != nil || len(b) > 1024 || ref.TableCount != 10_000 {
		t.Errorf("%d bytes for %d tables, %v", len(b), ref.TableCount, err)
	}
}

func TestRefsThatNoStreamerMakesAreRefused(t *testing.T) {
	if err := example(20).Validate(); err != nil {
		t.Errorf("a right one: %v", err)
	}
	if err := example(1).Validate(); err != nil {
		t.Errorf("of one change: %v", err)
	}
	for name, spoil := range map[string]func(*segment.Ref){
		"no pipeline": func(r *segment.Ref) { r.Pipeline = "" },
		"no lake":     func(r *segment.Ref) { r.Lake = "" },
		"no positions": func(r *segment.Ref) {
			r.First, r.Last, r.Follows = change.Position{}, change.Position{}, change.Position{}
		},
		"last before first":       func(r *segment.Ref) { r.First, r.Last = r.Last, r.First },
		"two timelines":           func(r *segment.Ref) { r.Last.Timeline++ },
		"following itself":        func(r *segment.Ref) { r.Follows = r.First },
		"following its own end":   func(r *segment.Ref) { r.Follows = r.Last },
		"following a later start": func(r *segment.Ref) { r.Follows.Timeline++ },
		"no rows":                 func(r *segment.Ref) { r.Rows = 0 },
		"negative rows":           func(r *segment.Ref) { r.Rows = -1 },
	} {
		ref := example(20)
		spoil(&ref)
		if err := ref.Validate(); err == nil {
			t.Errorf("%s: no error", name)
		} else if !strings.Contains(err.Error(), ref.First.String()) {
			t.Errorf("%s: the error %q does not name the segment", name, err)
		}
	}
}

func TestWorkflowIDsSortInStreamOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) change.Position {
			return change.Position{
				Timeline: change.Timeline(rapid.Uint32Range(1, 3).Draw(t, name)),
				LSN:      change.LSN(rapid.Uint64().Draw(t, name)), Ordinal: rapid.Uint64Range(0, change.MaxOrdinal).Draw(t, name),
			}
		}
		p, q := draw("p"), draw("q")
		if strings.Compare(segment.WorkflowID("a", p), segment.WorkflowID("a", q)) != p.Compare(q) {
			t.Fatalf("%s and %s", p, q)
		}
	})
}

func FuzzRefJSON(f *testing.F) {
	b, err := json.Marshal(example(9))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"first":"00000001-00000016B374D848-0000000000"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var ref segment.Ref
		if err := json.Unmarshal(b, &ref); err != nil || ref.Validate() != nil {
			return
		}
		again, err := json.Marshal(ref)
		if err != nil {
			return // a day that has no text
		}
		var back segment.Ref
		if err := json.Unmarshal(again, &back); err != nil || back.Ticket() != ref.Ticket() || back.Follows != ref.Follows || back.Day != ref.Day {
			t.Errorf("%s came back as %+v, %v", again, back, err)
		}
	})
}
