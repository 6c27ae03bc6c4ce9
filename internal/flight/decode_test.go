package flight

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment/segmenttest"
)

// tape records a stream and plays it back.
type tape struct{ messages []*flight.FlightData }

func (t *tape) Send(d *flight.FlightData) error {
	t.messages = append(t.messages, &flight.FlightData{
		DataHeader: bytes.Clone(d.DataHeader), AppMetadata: bytes.Clone(d.AppMetadata), DataBody: bytes.Clone(d.DataBody),
	})
	return nil
}

func (t *tape) Recv() (*flight.FlightData, error) {
	if len(t.messages) == 0 {
		return nil, io.EOF
	}
	m := t.messages[0]
	t.messages = t.messages[1:]
	return m, nil
}

// record encodes cs.
func record(t testing.TB, cs []change.Change) *tape {
	t.Helper()
	var out tape
	e := newEncoder(&out)
	if err := e.add(cs); err != nil {
		t.Fatal(err)
	}
	if err := e.end(); err != nil {
		t.Fatal(err)
	}
	return &out
}

// decode reads a stream to its end.
func decode(r flight.DataStreamReader, limit int) ([]change.Change, error) {
	d, err := newDecoder(r)
	if err != nil {
		return nil, err
	}
	defer d.close()
	d.maxRaw = limit
	var all []change.Change
	for {
		cs, err := d.next()
		if d.done && errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, cs...)
	}
}

func TestEveryBatchIsBounded(t *testing.T) {
	m := segmenttest.NewMaker(0x1000)
	var cs []change.Change
	for i := range 3000 {
		cs = append(cs, m.Change(change.Insert, segmenttest.Relation(uint32(i)), segmenttest.Raw('I', i%2000, i)))
	}
	cs = append(cs, m.Change(change.Insert, segmenttest.Relation(1), segmenttest.Raw('I', 10<<20, 1)))
	for i := range 10_000 {
		cs = append(cs, m.Change(change.Insert, cs[0].Relation, segmenttest.Raw('I', 1, i)))
	}
	s := record(t, cs)
	for i, m := range s.messages {
		if n := len(m.DataHeader) + len(m.DataBody) + len(m.AppMetadata); n > 2*maxBatchBytes {
			t.Errorf("message %d has %d bytes", i, n)
		}
	}
	if n := len(s.messages); n > 60 {
		t.Errorf("%d messages", n)
	}
	got, err := decode(s, maxRaw)
	if err != nil {
		t.Fatal(err)
	}
	if d := segmenttest.Diff(got, cs); d != "" {
		t.Error(d)
	}
}

func TestRawOfShortMessagesAliasesTheBatchAndCannotGrowIntoTheNext(t *testing.T) {
	s := record(t, example(10).Changes)
	body := s.messages[1].DataBody
	got, err := decode(s, maxRaw)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(body, got[3].Raw)
	body[at]++
	if got[3].Raw[0] != body[at] {
		t.Error("the message was copied")
	}
	if cap(got[3].Raw) != len(got[3].Raw) {
		t.Error("an append would write into the next message")
	}
}

func TestStreamWithoutItsEndIsAnError(t *testing.T) {
	whole := record(t, example(9000).Changes)
	for n := range whole.messages {
		got, err := decode(&tape{whole.messages[:n]}, maxRaw)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("after %d of %d messages: %d changes and %v", n, len(whole.messages), len(got), err)
		}
	}
}

func TestStreamWithAMissingOrDoubledBatchIsAnError(t *testing.T) {
	whole := record(t, example(20_000).Changes).messages
	for i := 1; i < len(whole); i++ {
		if _, err := decode(&tape{slices.Delete(slices.Clone(whole), i, i+1)}, maxRaw); err == nil {
			t.Errorf("without message %d of %d: no error", i, len(whole))
		}
		if _, err := decode(&tape{slices.Insert(slices.Clone(whole), i, whole[i])}, maxRaw); err == nil {
			t.Errorf("with message %d of %d twice: no error", i, len(whole))
		}
	}
}

// TestBrokenBatchesAreErrors writes batches as no encoder of ours does.
func TestBrokenBatchesAreErrors(t *testing.T) {
	m := segmenttest.NewMaker(0x1000)
	rel := segmenttest.Relation(16500)
	a := m.Change(change.Insert, rel, []byte("Iabc"))
	b := m.Change(change.Insert, rel, []byte("Idefgh"))
	rows := func(spoil func(*batchColumns)) *batchColumns {
		c := &batchColumns{}
		c.reset()
		c.add(&a, 0, a.Raw)
		c.add(&b, 0, b.Raw)
		if spoil != nil {
			spoil(c)
		}
		return c
	}
	part := func(n int) func(*batchColumns) {
		return func(c *batchColumns) { c.offsets[2] = c.offsets[1] + int32(n) }
	}
	none := &batchColumns{}
	none.reset()
	relation := func() batchMeta { return batchMeta{Relations: []*change.Relation{rel}} }
	end := func(rows, bytes int64) batchMeta { return batchMeta{End: &endMark{rows, bytes}} }

	for name, c := range map[string]struct {
		cols  []*batchColumns
		metas []batchMeta
		want  string // in the error; "" for none
	}{
		"nothing is broken":           {[]*batchColumns{rows(nil), none}, []batchMeta{relation(), end(2, 10)}, ""},
		"relation too high":           {[]*batchColumns{rows(func(c *batchColumns) { c.relation[1] = 1 }), none}, []batchMeta{relation(), end(2, 10)}, "relation 1 of 1"},
		"relation negative":           {[]*batchColumns{rows(func(c *batchColumns) { c.relation[1] = -2 }), none}, []batchMeta{relation(), end(2, 10)}, "relation -2 of 1"},
		"a row without a relation":    {[]*batchColumns{rows(func(c *batchColumns) { c.relation[1] = -1 }), none}, []batchMeta{relation(), end(2, 10)}, "relation -1 of 1"},
		"no relation sent":            {[]*batchColumns{rows(nil), none}, []batchMeta{{}, end(2, 10)}, "relation 0 of 0"},
		"a relation that is null":     {[]*batchColumns{rows(nil), none}, []batchMeta{{Relations: []*change.Relation{nil}}, end(2, 10)}, "null"},
		"operation unknown":           {[]*batchColumns{rows(func(c *batchColumns) { c.operation[0] = 9 }), none}, []batchMeta{relation(), end(2, 10)}, "operation 9"},
		"operation zero":              {[]*batchColumns{rows(func(c *batchColumns) { c.operation[0] = 0 }), none}, []batchMeta{relation(), end(2, 10)}, "operation 0"},
		"flags unknown":               {[]*batchColumns{rows(func(c *batchColumns) { c.flags[0] = 2 }), none}, []batchMeta{relation(), end(2, 10)}, "flags 0x2"},
		"ordinal too high":            {[]*batchColumns{rows(func(c *batchColumns) { c.ordinal[0] = 1 << 40 }), none}, []batchMeta{relation(), end(2, 10)}, "ordinal"},
		"length too high":             {[]*batchColumns{rows(func(c *batchColumns) { c.length[0] = 1 << 60 }), none}, []batchMeta{relation(), end(2, 10)}, "at most"},
		"length too low":              {[]*batchColumns{rows(func(c *batchColumns) { c.length[0] = 3 }), none}, []batchMeta{relation(), end(2, 10)}, "4 bytes of 3"},
		"offsets go back":             {[]*batchColumns{rows(func(c *batchColumns) { c.offsets[1] = 11 }), none}, []batchMeta{relation(), end(2, 10)}, "bytes"},
		"incomplete in the middle":    {[]*batchColumns{rows(func(c *batchColumns) { c.length[0] = 5 }), none}, []batchMeta{relation(), end(2, 10)}, "incomplete"},
		"incomplete at the end":       {[]*batchColumns{rows(part(3)), none}, []batchMeta{relation(), end(1, 4)}, "ends inside"},
		"another change in between":   {[]*batchColumns{rows(part(3)), rows(nil), none}, []batchMeta{relation(), {}, end(2, 10)}, "is complete"},
		"end counts rows it had not":  {[]*batchColumns{rows(nil), none}, []batchMeta{relation(), end(3, 10)}, "end speaks of 3 rows"},
		"end counts bytes it had not": {[]*batchColumns{rows(nil), none}, []batchMeta{relation(), end(2, 11)}, "of 11 bytes"},
		"rows beside the end":         {[]*batchColumns{rows(nil), rows(nil)}, []batchMeta{relation(), end(2, 10)}, "beside its end"},
		"a batch after the end":       {[]*batchColumns{rows(nil), none, none}, []batchMeta{relation(), end(2, 10), {}}, "after its end"},
		"no end":                      {[]*batchColumns{rows(nil), none}, []batchMeta{relation(), {}}, "cut after 2 rows"},
	} {
		t.Run(name, func(t *testing.T) {
			var s tape
			schema := wireSchema()
			w := flight.NewRecordWriter(&s, ipc.WithSchema(schema))
			for i, cols := range c.cols {
				meta, err := json.Marshal(c.metas[i])
				if err != nil {
					t.Fatal(err)
				}
				if err := w.WriteWithAppMetadata(cols.record(schema), meta); err != nil {
					t.Fatal(err)
				}
			}
			got, err := decode(&s, maxRaw)
			switch {
			case c.want == "" && (err != nil || segmenttest.Diff(got, []change.Change{a, b}) != ""):
				t.Errorf("%d changes and %v", len(got), err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v does not say %q", err, c.want)
			}
		})
	}
}

func TestStreamOfAnotherVersionOrShapeIsRefused(t *testing.T) {
	versioned := func(v string) *arrow.Metadata {
		m := arrow.NewMetadata([]string{versionKey}, []string{v})
		return &m
	}
	fields := wireSchema().Fields()
	other := slices.Clone(fields)
	other[colXID].Type = arrow.PrimitiveTypes.Uint64
	for name, c := range map[string]struct {
		schema *arrow.Schema
		want   string
	}{
		"a later version":   {arrow.NewSchema(fields, versioned("2")), "same version of Tidemark"},
		"no version":        {arrow.NewSchema(fields, nil), "no version"},
		"a column is short": {arrow.NewSchema(fields[:columns-1], versioned("1")), "11 columns"},
		"another type":      {arrow.NewSchema(other, versioned("1")), `"xid" of type uint32`},
	} {
		var s tape
		b := array.NewRecordBuilder(memory.DefaultAllocator, c.schema)
		if err := flight.NewRecordWriter(&s, ipc.WithSchema(c.schema)).Write(b.NewRecordBatch()); err != nil {
			t.Fatal(err)
		}
		if _, err := decode(&s, maxRaw); !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v does not say %q", name, err, c.want)
		}
	}
}

// TestMutatedStreamsGiveErrorsOrEveryRow spoils a few bytes of right streams in
// each way that the seed brings: far more often than a fuzzer gets through
// arrow in the same time.
func TestMutatedStreamsGiveErrorsOrEveryRow(t *testing.T) {
	cs := example(12).Changes
	whole := record(t, cs).messages
	r := rand.New(rand.NewPCG(1, 2))
	failed := 0
	for range mutations {
		i := r.IntN(len(whole))
		m := &flight.FlightData{
			DataHeader: bytes.Clone(whole[i].DataHeader), AppMetadata: bytes.Clone(whole[i].AppMetadata), DataBody: bytes.Clone(whole[i].DataBody),
		}
		for range 1 + r.IntN(4) {
			parts := []*[]byte{&m.DataHeader, &m.DataHeader, &m.DataBody, &m.AppMetadata}
			p := parts[r.IntN(len(parts))]
			if len(*p) == 0 {
				continue
			}
			at := r.IntN(len(*p))
			switch r.IntN(5) {
			case 0:
				(*p)[at] ^= 1 << r.IntN(8)
			case 1:
				(*p)[at] = byte(r.Uint32())
			case 2:
				*p = (*p)[:at]
			case 3:
				copy((*p)[at:], []byte{0xFF, 0xFF, 0xFF, 0x7F})
			case 4:
				*p = append((*p)[:at], (*p)[min(at+1+r.IntN(8), len(*p)):]...)
			}
		}
		s := &tape{slices.Clone(whole)}
		s.messages[i] = m
		got, err := decode(s, fuzzRaw)
		if err != nil {
			failed++
		} else if len(got) != len(cs) {
			t.Fatalf("message %d as %+v: %d changes of %d, and no error", i, m, len(got), len(cs))
		}
	}
	if failed < mutations/3 {
		t.Errorf("only %d of %d were refused: the mutations do not reach far", failed, mutations)
	}
}

const mutations = 5000
