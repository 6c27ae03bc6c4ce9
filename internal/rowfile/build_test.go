package rowfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

var accounts = &change.Relation{
	OID: 7, Hash: 0xFFFFFFFFFFFFFFFF, Namespace: "public", Name: "Accounts", Identity: 'd',
	Columns: []change.Column{
		{Name: "id", Type: 23, Modifier: -1, Key: true},
		{Name: "name", Type: 25, Modifier: -1},
		{Name: "note", Type: 70001, Modifier: -1},
	},
	Types: []change.Type{{OID: 70001, Namespace: "public", Name: "mood", Kind: change.KindEnum}},
}

const toasted = "\x00toasted"

// tuple appends TupleData of accounts: "" is null.
func tuple(raw []byte, image byte, values ...string) []byte {
	raw = binary.BigEndian.AppendUint16(append(raw, image), uint16(len(values)))
	for _, v := range values {
		switch v {
		case "":
			raw = append(raw, 'n')
		case toasted:
			raw = append(raw, 'u')
		default:
			raw = binary.BigEndian.AppendUint32(append(raw, 't'), uint32(len(v)))
			raw = append(raw, v...)
		}
	}
	return raw
}

func row(kind byte) []byte { return []byte{kind, 0, 0, 0, 7} }

// sample has a change of every operation.
func sample() []change.Change {
	const day = 1_767_312_000_000_000 // 2026-01-02 00:00:00
	at := func(ordinal uint64, op change.Operation, raw []byte) change.Change {
		return change.Change{
			Position: change.Position{Timeline: 1, LSN: 0x16_B374D848, Ordinal: ordinal},
			LSN:      change.LSN(0x16_B3740000 + ordinal), CommitTime: day + 1, Received: day + 2,
			Relation: accounts, Raw: raw, XID: 4_294_967_295, Operation: op,
		}
	}
	changes := []change.Change{
		at(0, change.Insert, tuple(row('I'), 'N', "1", `say "hi"`, "")),
		at(1, change.Update, tuple(tuple(row('U'), 'K', "1", "", ""), 'N', "2", toasted, toasted)),
		at(2, change.Update, tuple(row('U'), 'N', "2", "b", "sad")),
		at(3, change.Delete, tuple(row('D'), 'K', "2", "", "")),
		at(4, change.Truncate, []byte{'T', 0, 0, 0, 2, 0, 0, 0, 0, 7, 0, 0, 0, 7}),
		at(5, change.Truncate, []byte{'T', 0, 0, 0, 2, 0, 0, 0, 0, 7, 0, 0, 0, 7}),
		at(6, change.Message, append([]byte("M\x01\x00\x00\x00\x00\x00\x00\x00\x01p\x00\x00\x00\x00\x02"), "hi"...)),
	}
	changes[4].Joined = true
	changes[6].Relation = nil
	return changes
}

// many gives n inserts, each with a name of the given length.
func many(n, length int) []change.Change {
	changes := make([]change.Change, n)
	for i := range changes {
		changes[i] = sample()[0]
		changes[i].Position.Ordinal = uint64(i)
		name := bytes.Repeat([]byte{byte('a' + i%26)}, length)
		changes[i].Raw = tuple(row('I'), 'N', fmt.Sprint(i), string(name), "ok")
	}
	return changes
}

type changeWriter interface {
	Write([]change.Change) error
	Close() (Stats, error)
}

// write makes a file of changes, handed over in batches.
func write(t testing.TB, raw bool, opts Options, batches ...[]change.Change) ([]byte, Stats) {
	t.Helper()
	var out bytes.Buffer
	var w changeWriter
	var err error
	if raw {
		w, err = NewRawWriter(&out, opts)
	} else {
		w, err = NewWriter(&out, opts)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range batches {
		if err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	stats, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if stats.Bytes != int64(out.Len()) {
		t.Errorf("Stats say %d bytes, the file has %d", stats.Bytes, out.Len())
	}
	return out.Bytes(), stats
}
