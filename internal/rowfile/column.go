package rowfile

import (
	"fmt"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
)

// column collects the values of one column until they are handed to the Parquet
// writer, which copies them.
type column interface {
	// flush writes what was collected and resets.
	flush(w file.ColumnChunkWriter) error
	// reset forgets what was collected and keeps the memory.
	reset()
}

// ints collects a required INT64 column.
type ints struct{ values []int64 }

func (c *ints) add(v int64) { c.values = append(c.values, v) }

func (c *ints) reset() { c.values = c.values[:0] }

func (c *ints) flush(w file.ColumnChunkWriter) error {
	cw, ok := w.(*file.Int64ColumnChunkWriter)
	if !ok {
		return fmt.Errorf("column writer is a %T", w)
	}
	_, err := cw.WriteBatch(c.values, nil, nil)
	c.reset()
	return err
}

// bools collects a required BOOLEAN column.
type bools struct{ values []bool }

func (c *bools) add(v bool) { c.values = append(c.values, v) }

func (c *bools) reset() { c.values = c.values[:0] }

func (c *bools) flush(w file.ColumnChunkWriter) error {
	cw, ok := w.(*file.BooleanColumnChunkWriter)
	if !ok {
		return fmt.Errorf("column writer is a %T", w)
	}
	_, err := cw.WriteBatch(c.values, nil, nil)
	c.reset()
	return err
}

// texts collects a BYTE_ARRAY column. Values that stay as they are until the
// file is done are kept by reference (add); others are appended to arena and
// closed with end.
type texts struct {
	optional bool
	values   []parquet.ByteArray
	levels   []int16 // with optional: 1 for a value, 0 for null
	arena    []byte
	// spans are the values that lie in arena, as indexes into values with their
	// ends: arena moves while it grows, so they are cut at flush.
	spans []span
}

type span struct{ value, end int }

func (c *texts) add(v []byte) {
	c.values = append(c.values, v)
	c.levels = append(c.levels, 1)
}

func (c *texts) null() { c.levels = append(c.levels, 0) }

// name adds v, or null if it is nil.
func (c *texts) name(v []byte) {
	if v == nil {
		c.null()
		return
	}
	c.add(v)
}

// end closes a value that was appended to arena from start on, and gives its
// size.
func (c *texts) end(start int) (int64, error) {
	size := len(c.arena) - start
	if size > maxValue {
		return 0, fmt.Errorf("%w: %d bytes", ErrTooLarge, size)
	}
	c.spans = append(c.spans, span{len(c.values), len(c.arena)})
	c.add(nil)
	return int64(size), nil
}

func (c *texts) flush(w file.ColumnChunkWriter) error {
	cw, ok := w.(*file.ByteArrayColumnChunkWriter)
	if !ok {
		return fmt.Errorf("column writer is a %T", w)
	}
	start := 0
	for _, s := range c.spans {
		c.values[s.value] = c.arena[start:s.end]
		start = s.end
	}
	var levels []int16
	if c.optional {
		levels = c.levels
	}
	_, err := cw.WriteBatch(c.values, levels, nil)
	c.reset()
	return err
}

func (c *texts) reset() {
	c.values, c.levels, c.spans = c.values[:0], c.levels[:0], c.spans[:0]
	if cap(c.arena) > maxKept {
		c.arena = nil
	}
	c.arena = c.arena[:0]
}

// lists collects a required list of required strings.
type lists struct {
	values []parquet.ByteArray
	def    []int16
	rep    []int16
}

func (c *lists) add(list []string) {
	if len(list) == 0 {
		c.def, c.rep = append(c.def, 0), append(c.rep, 0)
		return
	}
	for i, s := range list {
		c.values = append(c.values, parquet.ByteArray(s))
		c.def, c.rep = append(c.def, 1), append(c.rep, int16(min(i, 1)))
	}
}

func (c *lists) flush(w file.ColumnChunkWriter) error {
	cw, ok := w.(*file.ByteArrayColumnChunkWriter)
	if !ok {
		return fmt.Errorf("column writer is a %T", w)
	}
	_, err := cw.WriteBatch(c.values, c.def, c.rep)
	c.reset()
	return err
}

func (c *lists) reset() { c.values, c.def, c.rep = c.values[:0], c.def[:0], c.rep[:0] }
