package flight

import (
	"encoding/binary"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/flight"
)

// guarded looks at the header of each message before arrow does. Arrow allocates
// what the vectors in a header claim to hold before it looks whether they do,
// and what it cannot allocate ends the process. So a message is let through
// only if it is of one of the two kinds that this protocol has, and if its
// vectors have the lengths that they have there.
type guarded struct{ s flight.DataStreamReader }

// Recv implements flight.DataStreamReader.
func (g guarded) Recv() (*flight.FlightData, error) {
	m, err := g.s.Recv()
	if err != nil {
		return nil, err
	}
	if err := checkHeader(m.GetDataHeader()); err != nil {
		return nil, fmt.Errorf("%w: header of a message: %w", ErrProtocol, err)
	}
	return m, nil
}

// Slots of the tables, in the order of Message.fbs and Schema.fbs in the format
// folder of Apache Arrow. An optional union takes two slots: its type, itself.
const (
	messageHeaderType = 1
	messageHeader     = 2
	messageMetadata   = 4

	schemaFields   = 1
	schemaMetadata = 2

	fieldTypeType   = 2
	fieldDictionary = 4
	fieldChildren   = 5
	fieldMetadata   = 6

	batchNodes       = 1
	batchBuffers     = 2
	batchCompression = 3
	batchVariadic    = 4
)

// Values of the unions' types.
const (
	headerSchema      = 1
	headerRecordBatch = 3
	typeInt           = 2
	typeBinary        = 4
)

// maxMetadata bounds the key-value pairs of a schema or a field; we send one.
const maxMetadata = 16

// checkHeader checks what guarded promises of the flatbuffer h. What it does not
// check (offsets, the values) arrow reads without allocating, and turns what
// goes wrong into an error.
func checkHeader(h []byte) error {
	b := buffer{b: h}
	message := b.target(0)
	b.max(message, messageMetadata, 0)
	header := b.table(message, messageHeader)
	switch kind := b.byte(message, messageHeaderType); {
	case b.err != nil:
	case kind == headerSchema:
		b.max(header, schemaMetadata, maxMetadata)
		fields, n := b.vector(header, schemaFields)
		if n != columns && b.err == nil {
			return fmt.Errorf("%d columns, want %d", n, columns)
		}
		for i := range n {
			f := b.target(fields + 4*i)
			b.max(f, fieldChildren, 0)
			b.max(f, fieldMetadata, maxMetadata)
			if t := b.byte(f, fieldTypeType); t != typeInt && t != typeBinary {
				b.fail("a column of type %d", t)
			}
			if b.slot(f, fieldDictionary) != 0 {
				b.fail("a dictionary")
			}
		}
	case kind == headerRecordBatch:
		// A validity buffer and the values of each column, and the offsets of one.
		b.max(header, batchNodes, columns)
		b.max(header, batchBuffers, 2*columns+1)
		b.max(header, batchVariadic, 0)
		if b.slot(header, batchCompression) != 0 {
			b.fail("a compressed batch")
		}
	default:
		b.fail("kind %d", kind)
	}
	return b.err
}

// buffer reads a flatbuffer (https://flatbuffers.dev/internals) and remembers
// the first thing that is wrong with it; after that everything reads as zero.
type buffer struct {
	b   []byte
	err error
}

func (b *buffer) fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
}

// bytes gives the n bytes at position at.
func (b *buffer) bytes(at, n int) []byte {
	if at < 0 || at > len(b.b)-n {
		b.fail("%d bytes at %d of %d", n, at, len(b.b))
	}
	if b.err != nil {
		return make([]byte, n)
	}
	return b.b[at : at+n]
}

func (b *buffer) u16(at int) int { return int(binary.LittleEndian.Uint16(b.bytes(at, 2))) }
func (b *buffer) u32(at int) int { return int(binary.LittleEndian.Uint32(b.bytes(at, 4))) }

// target follows the offset at position at.
func (b *buffer) target(at int) int { return at + b.u32(at) }

// slot gives the position of a table's field, zero if it is absent.
func (b *buffer) slot(table, slot int) int {
	vtable := table - int(int32(b.u32(table)))
	if 4+2*slot+2 > b.u16(vtable) {
		return 0
	}
	if off := b.u16(vtable + 4 + 2*slot); off != 0 {
		return table + off
	}
	return 0
}

// byte gives a field of one byte, zero if it is absent.
func (b *buffer) byte(table, slot int) byte {
	if at := b.slot(table, slot); at != 0 {
		return b.bytes(at, 1)[0]
	}
	return 0
}

// table gives the position of the table that a field refers to.
func (b *buffer) table(table, slot int) int {
	at := b.slot(table, slot)
	if at == 0 {
		b.fail("it has no field %d", slot)
		return 0
	}
	return b.target(at)
}

// vector gives the position of the first element and the number of elements of
// a vector, zero if it is absent.
func (b *buffer) vector(table, slot int) (first, n int) {
	at := b.slot(table, slot)
	if at == 0 {
		return 0, 0
	}
	at = b.target(at)
	if n = b.u32(at); n > len(b.b) {
		b.fail("a vector of %d elements in %d bytes", n, len(b.b))
		return 0, 0
	}
	return at + 4, n
}

// max fails if a vector has more than n elements.
func (b *buffer) max(table, slot, n int) {
	if _, got := b.vector(table, slot); got > n {
		b.fail("a vector of %d elements, at most %d", got, n)
	}
}
