package flight

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// batchColumns are the values of a batch: rows of each, of offsets one more.
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

// boundedAllocator keeps arrow from allocating what a broken length asks for.
// It can only panic, and arrow's reader turns panics into errors. In a stream
// that is as it should be nothing is compressed and so nothing allocated here.
type boundedAllocator struct{ limit int }

// Allocate implements memory.Allocator.
func (a boundedAllocator) Allocate(size int) []byte {
	if size < 0 || size > a.limit {
		panic(fmt.Sprintf("a buffer of %d bytes, at most %d", size, a.limit))
	}
	return make([]byte, size)
}

// Reallocate implements memory.Allocator.
func (a boundedAllocator) Reallocate(size int, b []byte) []byte {
	if 0 <= size && size <= cap(b) {
		return b[:size]
	}
	n := a.Allocate(size)
	copy(n, b)
	return n
}

// Free implements memory.Allocator.
func (a boundedAllocator) Free([]byte) {}
