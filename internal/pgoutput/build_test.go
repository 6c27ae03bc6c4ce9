package pgoutput

import (
	"encoding/binary"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// What follows builds messages by hand, for what no server sends on demand.

type builder []byte

func (b builder) byte(v byte) builder     { return append(b, v) }
func (b builder) uint16(v uint16) builder { return binary.BigEndian.AppendUint16(b, v) }
func (b builder) uint32(v uint32) builder { return binary.BigEndian.AppendUint32(b, v) }
func (b builder) uint64(v uint64) builder { return binary.BigEndian.AppendUint64(b, v) }
func (b builder) text(s string) builder   { return append(append(b, s...), 0) }

func begin(lsn change.LSN, at int64, xid uint32) []byte {
	return builder{'B'}.uint64(uint64(lsn)).uint64(uint64(at)).uint32(xid)
}

func commit(lsn, end change.LSN, at int64) []byte {
	return builder{'C'}.byte(0).uint64(uint64(lsn)).uint64(uint64(end)).uint64(uint64(at))
}

func relation(oid uint32, name string, identity byte, columns ...change.Column) []byte {
	b := builder{'R'}.uint32(oid).text("public").text(name).byte(identity).uint16(uint16(len(columns)))
	for _, c := range columns {
		flags := byte(0)
		if c.Key {
			flags = 1
		}
		b = b.byte(flags).text(c.Name).uint32(c.Type).uint32(uint32(c.Modifier))
	}
	return b
}

// tuple appends TupleData: nil is null, "\x00u" an unchanged TOASTed value.
func (b builder) tuple(image byte, values ...any) builder {
	b = b.byte(image).uint16(uint16(len(values)))
	for _, v := range values {
		switch v := v.(type) {
		case nil:
			b = b.byte('n')
		case toasted:
			b = b.byte('u')
		case string:
			b = append(b.byte('t').uint32(uint32(len(v))), v...)
		}
	}
	return b
}

// toasted stands for an unchanged TOASTed value.
type toasted struct{}

func row(kind byte, oid uint32) builder { return builder{kind}.uint32(oid) }

func truncate(oids ...uint32) []byte {
	b := builder{'T'}.uint32(uint32(len(oids))).byte(0)
	for _, oid := range oids {
		b = b.uint32(oid)
	}
	return b
}

func logical(transactional bool, lsn change.LSN, prefix, content string) []byte {
	flags := byte(0)
	if transactional {
		flags = 1
	}
	return append(builder{'M'}.byte(flags).uint64(uint64(lsn)).text(prefix).uint32(uint32(len(content))), content...)
}

var twoColumns = []change.Column{{Name: "id", Type: oidInt4, Modifier: -1, Key: true}, {Name: "v", Type: 25, Modifier: -1}}
