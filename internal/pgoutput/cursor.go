package pgoutput

import (
	"bytes"
	"encoding/binary"
)

// cursor reads the fields of a message from the front. A read beyond the end
// yields zero values and sets short, which the caller looks at once, after the
// last field.
type cursor struct {
	rest  []byte
	short bool
}

func (c *cursor) take(n int) []byte {
	if n < 0 || n > len(c.rest) {
		c.rest, c.short = nil, true
		return nil
	}
	b := c.rest[:n:n]
	c.rest = c.rest[n:]
	return b
}

func (c *cursor) uint8() uint8 {
	if b := c.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) uint16() uint16 {
	if b := c.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (c *cursor) uint32() uint32 {
	if b := c.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) uint64() uint64 {
	if b := c.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// text reads a null-terminated string, without its terminator.
func (c *cursor) text() []byte {
	i := bytes.IndexByte(c.rest, 0)
	if i < 0 {
		c.rest, c.short = nil, true
		return nil
	}
	b := c.take(i + 1)
	return b[:i:i]
}

// done says whether every field was there and nothing is left over.
func (c *cursor) done() bool { return !c.short && len(c.rest) == 0 }
