package flight

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/flight"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/internal/segment/segmenttest"
)

// fuzzRaw bounds what the decoder may be made to allocate for a message.
const fuzzRaw = 1 << 16

// FuzzDecodeMessages replaces one message of a right stream.
func FuzzDecodeMessages(f *testing.F) {
	whole := record(f, example(12).Changes).messages
	for i, m := range whole {
		f.Add(i, m.DataHeader, m.DataBody, m.AppMetadata)
	}
	want := example(12).Changes
	f.Fuzz(func(t *testing.T, i int, header, body, meta []byte) {
		if i < 0 || i >= len(whole) {
			return
		}
		s := &tape{append(append([]*flight.FlightData{}, whole[:i]...), &flight.FlightData{DataHeader: header, DataBody: body, AppMetadata: meta})}
		s.messages = append(s.messages, whole[i+1:]...)
		got, err := decode(s, fuzzRaw)
		if err == nil && len(got) != len(want) {
			t.Errorf("%d changes of %d, and no error", len(got), len(want))
		}
	})
}

// FuzzDecodeColumns writes into the values of a batch behind arrow's back, so
// that the fuzzer does not have to find a way through its framing. An edit is
// 10 bytes: column, row, value.
func FuzzDecodeColumns(f *testing.F) {
	cs := example(6).Changes
	rel := segmenttest.Relation(16500)
	f.Add([]byte{})
	f.Add([]byte{colRelation, 1, 7, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{colLength, 5, 0, 1, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{colRaw, 2, 255, 255, 255, 255, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, edits []byte) {
		d := decoder{maxRaw: fuzzRaw, relations: []*change.Relation{rel}}
		total := 0
		for range 2 {
			var cols batchColumns
			cols.reset()
			for i := range cs {
				cols.add(&cs[i], 0, cs[i].Raw)
			}
			edits = edit(&cols, edits)
			got, err := d.rows(&cols)
			total += len(got)
			if err != nil {
				return
			}
		}
		if int64(total) != d.got.Rows {
			t.Errorf("%d changes were given and %d counted", total, d.got.Rows)
		}
	})
}

// edit writes into cols what edits say, up to a column number that ends them,
// and gives the rest.
func edit(cols *batchColumns, edits []byte) []byte {
	for len(edits) >= 10 {
		col, row, v := edits[0]%(columns+2), int(edits[1])%cols.rows, binary.LittleEndian.Uint64(edits[2:])
		edits = edits[10:]
		switch col {
		case colTimeline:
			cols.timeline[row] = uint32(v)
		case colOrdinal:
			cols.ordinal[row] = v
		case colOperation:
			cols.operation[row] = uint8(v)
		case colFlags:
			cols.flags[row] = uint8(v)
		case colRelation:
			cols.relation[row] = int32(v)
		case colLength:
			cols.length[row] = v
		case colRaw:
			cols.offsets[row+int(v>>63)] = int32(v)
		case columns:
			cols.raw = cols.raw[:v%uint64(len(cols.raw)+1)]
		case columns + 1:
			return edits
		}
	}
	return nil
}

func FuzzTicket(f *testing.F) {
	b, err := encodeTicket(example(3).Ref.Ticket())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte(`{"version":1,"pipeline":"p"}`))
	f.Add(bytes.Replace(b, []byte(`"digest"`), []byte(`"other"`), 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		ticket, err := decodeTicket(b)
		if err != nil {
			return
		}
		again, err := encodeTicket(ticket)
		if err != nil {
			return // too long by what JSON escapes
		}
		back, err := decodeTicket(again)
		if err != nil || back != ticket {
			t.Errorf("%+v came back as %+v, %v", ticket, back, err)
		}
		ref := segment.Ref{Pipeline: ticket.Pipeline, Lake: "l", First: ticket.First, Last: ticket.Last, Rows: 1}
		if err := ref.Validate(); err != nil {
			t.Errorf("a ticket of no possible segment: %v", err)
		}
	})
}

func TestTicketComesBackAndWrongOnesAreRefused(t *testing.T) {
	want := example(3).Ref.Ticket()
	b, err := encodeTicket(want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decodeTicket(b); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for name, c := range map[string]string{
		"nothing":              ``,
		"no JSON":              `hello`,
		"a later version":      `{"version":2,"anything":true}`,
		"no version":           `{"pipeline":"p","first":"00000001-0000000000001000-0000000000","last":"00000001-0000000000001000-0000000000","digest":"0000000000000000"}`,
		"no pipeline":          `{"version":1,"first":"00000001-0000000000001000-0000000000","last":"00000001-0000000000001000-0000000000","digest":"0000000000000000"}`,
		"no positions":         `{"version":1,"pipeline":"p","digest":"0000000000000000"}`,
		"last before first":    `{"version":1,"pipeline":"p","first":"00000001-0000000000001000-0000000001","last":"00000001-0000000000001000-0000000000","digest":"0000000000000000"}`,
		"two timelines":        `{"version":1,"pipeline":"p","first":"00000001-0000000000001000-0000000000","last":"00000002-0000000000001000-0000000000","digest":"0000000000000000"}`,
		"a position in lower":  `{"version":1,"pipeline":"p","first":"00000001-000000000000abcd-0000000000","last":"00000001-0000000000ABCDEF-0000000000","digest":"0000000000000000"}`,
		"a field of another":   `{"version":1,"pipeline":"p","first":"00000001-0000000000001000-0000000000","last":"00000001-0000000000001000-0000000000","digest":"0000000000000000","more":1}`,
		"a digest that is not": `{"version":1,"pipeline":"p","first":"00000001-0000000000001000-0000000000","last":"00000001-0000000000001000-0000000000","digest":"0"}`,
		"too long":             `{"version":1,"pipeline":"` + string(segmenttest.Raw('p', maxTicket, 1)) + `"}`,
	} {
		if got, err := decodeTicket([]byte(c)); err == nil {
			t.Errorf("%s: taken as %+v", name, got)
		}
	}
}
