package segmenttest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// Pipeline is the one that all segments of this package belong to.
const Pipeline = "orders"

// CommitTime is that of the changes made here: 2024-03-01 12:00:00 UTC.
const CommitTime change.Time = 1709294400 * 1e6

// Relation makes the description of a table with the given OID, with a column
// of each sort of user-defined type.
func Relation(oid uint32) *change.Relation {
	name := fmt.Sprintf("table_%d", oid)
	return &change.Relation{
		OID: oid, Hash: xxhash.Sum64String(name), Namespace: "public", Name: name, Identity: 'd',
		Columns: []change.Column{
			{Name: "id", Type: 20, Modifier: -1, Key: true},
			{Name: `odd "näme" <&>`, Type: 25, Modifier: -1},
			{Name: "amount", Type: 1700, Modifier: 655366},
			{Name: "tags", Type: 16401, Modifier: -1},
			{Name: "place", Type: 16402, Modifier: -1},
		},
		Types: []change.Type{
			{OID: 16400, Namespace: "public", Name: "mood", Kind: change.KindEnum},
			{OID: 16401, Namespace: "public", Name: "_mood", Kind: change.KindArray, Base: 16400, Delimiter: ','},
			{OID: 16402, Namespace: "public", Name: "place", Kind: change.KindComposite, Fields: []change.Column{
				{Name: "x", Type: 701, Modifier: -1}, {Name: "y", Type: 701, Modifier: -1},
			}},
			{OID: 16403, Namespace: "public", Name: "hstore", Kind: change.KindBase, JSONCast: true},
		},
	}
}

// Maker makes changes in stream order, transaction by transaction. The zero
// Maker is not ready; use NewMaker.
type Maker struct {
	next change.Position
	xid  uint32
}

// NewMaker returns a Maker whose first transaction commits at lsn on timeline 1.
func NewMaker(lsn change.LSN) *Maker {
	return &Maker{next: change.Position{Timeline: 1, LSN: lsn}, xid: 700}
}

// Commit ends the transaction.
func (m *Maker) Commit() {
	m.next.LSN += 0x100
	m.next.Ordinal = 0
	m.xid++
}

// Change makes the next change of the transaction. The time of reading and the
// LSN differ from change to change, and LSNs go backwards now and then, as they
// do in Postgres.
func (m *Maker) Change(op change.Operation, rel *change.Relation, raw []byte) change.Change {
	c := change.Change{
		Position: m.next, LSN: m.next.LSN - 0x80 + change.LSN(m.next.Ordinal*7%32),
		CommitTime: CommitTime + change.Time(m.xid), Received: CommitTime + 5e6 + change.Time(m.next.Ordinal),
		Relation: rel, Raw: raw, XID: m.xid, Operation: op,
	}
	m.next.Ordinal++
	return c
}

// Mixed makes n changes in transactions of one to 40 changes, of every
// operation and over three tables: rows of a few bytes to a few kilobytes,
// truncates of several tables in one message, logical messages in and outside
// transactions. The last one ends a transaction.
func (m *Maker) Mixed(n int) []change.Change {
	rels := []*change.Relation{Relation(16500), Relation(16501), Relation(16502)}
	out := make([]change.Change, 0, n)
	for i := 0; len(out) < n; i++ {
		size := min(1+i*i%40, n-len(out))
		if i%11 == 10 {
			c := m.Change(change.Message, nil, Raw('M', 40, i))
			c.XID = 0
			out = append(out, c)
			m.Commit()
			continue
		}
		for j := 0; j < size; j++ {
			rel := rels[(i+j)%len(rels)]
			switch k := i*31 + j; {
			case k%29 == 28 && size-j >= len(rels):
				raw := Raw('T', 14, k)
				for r, rel := range rels {
					c := m.Change(change.Truncate, rel, raw)
					c.Joined = r < len(rels)-1
					out = append(out, c)
				}
				j += len(rels) - 1
			case k%23 == 22:
				out = append(out, m.Change(change.Message, nil, Raw('M', 30, k)))
			case k%7 == 5:
				out = append(out, m.Change(change.Update, rel, Raw('U', 60+k%90, k)))
			case k%7 == 6:
				out = append(out, m.Change(change.Delete, rel, Raw('D', 20, k)))
			case k%50 == 49:
				out = append(out, m.Change(change.Insert, rel, Raw('I', 3000, k)))
			default:
				out = append(out, m.Change(change.Insert, rel, Raw('I', 30+k%40, k)))
			}
		}
		m.Commit()
	}
	return out
}

// Raw makes size bytes (at least 1) that begin with kind and differ with seed.
// No decoder understands them.
func Raw(kind byte, size, seed int) []byte {
	var s [8]byte
	binary.BigEndian.PutUint64(s[:], xxhash.Sum64String(fmt.Sprint(seed)))
	b := bytes.Repeat(s[:], size/len(s)+1)[:max(size, 1)]
	b[0] = kind
	return b
}

// RefOf makes the reference of the segment that cs, at least one change, are.
func RefOf(follows change.Position, cs []change.Change) segment.Ref {
	h := segment.NewHasher()
	var tables []string
	for i := range cs {
		h.Add(&cs[i])
		if r := cs[i].Relation; r != nil {
			tables = append(tables, r.Namespace+"."+r.Name)
		}
	}
	slices.Sort(tables)
	tables = slices.Compact(tables)
	return segment.Ref{
		Pipeline: Pipeline, SystemID: "7311111111111111111", Lake: "file:///lake",
		First: cs[0].Position, Last: cs[len(cs)-1].Position, Follows: follows,
		Day: cs[0].CommitTime.Day(), Rows: h.Rows(), Bytes: h.Bytes(), Digest: h.Sum(),
		Tables: tables[:min(len(tables), segment.MaxTables)], TableCount: len(tables),
	}
}

// Before is what the first segment of a Maker that starts at lsn follows.
func Before(lsn change.LSN) change.Position { return change.JustBefore(1, lsn) }
