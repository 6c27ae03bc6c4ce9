package flight

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// batchColumns are the values of a batch: rows of each, of offsets one more.
// The encoder fills them, the decoder takes them from what has come.
type batchColumns struct {
	rows       int
	timeline   []uint32
	commitLSN  []uint64
	ordinal    []uint64
	lsn        []uint64
	commitTime []int64
	received   []int64
	xid        []uint32
	operation  []uint8
	flags      []uint8
	relation   []int32
	length     []uint64
	// The raw bytes of row i are raw[offsets[i]:offsets[i+1]], once these have
	// been checked.
	offsets []int32
	raw     []byte
}

// columnsOf takes a batch apart. It compares the sizes of the buffers with the
// number of rows, which arrow does only when a value is asked for, by
// panicking.
func columnsOf(rec arrow.RecordBatch) (*batchColumns, error) {
	if n := rec.NumCols(); n != columns {
		return nil, fmt.Errorf("%w: %d columns, want %d", ErrProtocol, n, columns)
	}
	n := int(rec.NumRows())
	if n < 0 || int64(n) != rec.NumRows() {
		return nil, fmt.Errorf("%w: %d rows", ErrProtocol, rec.NumRows())
	}
	b := &batchColumns{rows: n}
	if n == 0 {
		return b, nil
	}
	for _, err := range []error{
		values(rec, colTimeline, &b.timeline),
		values(rec, colCommitLSN, &b.commitLSN),
		values(rec, colOrdinal, &b.ordinal),
		values(rec, colLSN, &b.lsn),
		values(rec, colCommitTime, &b.commitTime),
		values(rec, colReceived, &b.received),
		values(rec, colXID, &b.xid),
		values(rec, colOperation, &b.operation),
		values(rec, colFlags, &b.flags),
		values(rec, colRelation, &b.relation),
		values(rec, colLength, &b.length),
		b.takeRaw(rec.Column(colRaw)),
	} {
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}

// values stores the values of a column of numbers.
func values[T any](rec arrow.RecordBatch, col int, into *[]T) error {
	a, ok := rec.Column(col).(interface{ Values() []T })
	if !ok {
		return fmt.Errorf("%w: column %d is of type %s", ErrProtocol, col, rec.Column(col).DataType())
	}
	*into = a.Values()
	if n := len(*into); int64(n) != rec.NumRows() {
		return fmt.Errorf("%w: column %d has %d values for %d rows", ErrProtocol, col, n, rec.NumRows())
	}
	return nil
}

func (b *batchColumns) takeRaw(col arrow.Array) error {
	a, ok := col.(*array.Binary)
	if !ok || a.Len() != b.rows || a.Data().Offset() != 0 {
		return fmt.Errorf("%w: column %d is short or of another type", ErrProtocol, colRaw)
	}
	bufs := a.Data().Buffers()
	if len(bufs) != 3 || bufs[1] == nil {
		return fmt.Errorf("%w: column %d has no offsets", ErrProtocol, colRaw)
	}
	b.offsets = arrow.Int32Traits.CastFromBytes(bufs[1].Bytes())
	if len(b.offsets) <= b.rows {
		return fmt.Errorf("%w: column %d has %d offsets for %d rows", ErrProtocol, colRaw, len(b.offsets), b.rows)
	}
	if bufs[2] != nil {
		b.raw = bufs[2].Bytes()
	}
	return nil
}

// reset empties b for the next batch and keeps its memory.
func (b *batchColumns) reset() {
	*b = batchColumns{
		timeline: b.timeline[:0], commitLSN: b.commitLSN[:0], ordinal: b.ordinal[:0], lsn: b.lsn[:0],
		commitTime: b.commitTime[:0], received: b.received[:0], xid: b.xid[:0],
		operation: b.operation[:0], flags: b.flags[:0], relation: b.relation[:0], length: b.length[:0],
		offsets: append(b.offsets[:0], 0), raw: b.raw[:0],
	}
}

// add appends a row for c, whose relation has number rel, with part of its
// message.
func (b *batchColumns) add(c *change.Change, rel int32, part []byte) {
	b.rows++
	b.timeline = append(b.timeline, uint32(c.Position.Timeline))
	b.commitLSN = append(b.commitLSN, uint64(c.Position.LSN))
	b.ordinal = append(b.ordinal, c.Position.Ordinal)
	b.lsn = append(b.lsn, uint64(c.LSN))
	b.commitTime = append(b.commitTime, int64(c.CommitTime))
	b.received = append(b.received, int64(c.Received))
	b.xid = append(b.xid, c.XID)
	b.operation = append(b.operation, uint8(c.Operation))
	var flags uint8
	if c.Joined {
		flags = flagJoined
	}
	b.flags = append(b.flags, flags)
	b.relation = append(b.relation, rel)
	b.length = append(b.length, uint64(len(c.Raw)))
	b.raw = append(b.raw, part...)
	b.offsets = append(b.offsets, int32(len(b.raw)))
}

// record gives b as a batch that aliases b's memory.
func (b *batchColumns) record(schema *arrow.Schema) arrow.RecordBatch {
	bufs := [columns][]byte{
		colTimeline:   arrow.Uint32Traits.CastToBytes(b.timeline),
		colCommitLSN:  arrow.Uint64Traits.CastToBytes(b.commitLSN),
		colOrdinal:    arrow.Uint64Traits.CastToBytes(b.ordinal),
		colLSN:        arrow.Uint64Traits.CastToBytes(b.lsn),
		colCommitTime: arrow.Int64Traits.CastToBytes(b.commitTime),
		colReceived:   arrow.Int64Traits.CastToBytes(b.received),
		colXID:        arrow.Uint32Traits.CastToBytes(b.xid),
		colOperation:  b.operation,
		colFlags:      b.flags,
		colRelation:   arrow.Int32Traits.CastToBytes(b.relation),
		colLength:     arrow.Uint64Traits.CastToBytes(b.length),
		colRaw:        b.raw,
	}
	var cols [columns]arrow.Array
	for i, buf := range bufs {
		data := []*memory.Buffer{nil, memory.NewBufferBytes(buf)}
		if i == colRaw {
			data = []*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(b.offsets)), memory.NewBufferBytes(buf)}
		}
		d := array.NewData(schema.Field(i).Type, b.rows, data, nil, 0, 0)
		cols[i] = array.MakeFromData(d)
		d.Release()
		defer cols[i].Release()
	}
	return array.NewRecordBatch(schema, cols[:], int64(b.rows))
}
