package rowfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// ErrNotRaw says that a file is none that RawWriter has written, or damaged.
var ErrNotRaw = errors.New("not a file of raw messages")

// ReadRaw reads back what a RawWriter has written: the same changes, the
// announcements of each table told apart as they were. The caller owns them;
// nothing of them is in body. ErrNotRaw.
func ReadRaw(body []byte) (changes []change.Change, err error) {
	// The Parquet library panics on some damaged input.
	defer func() {
		if r := recover(); r != nil {
			changes, err = nil, fmt.Errorf("%w: %v", ErrNotRaw, r)
		}
	}()
	r, err := file.NewParquetReader(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotRaw, err)
	}
	defer r.Close()
	rows := &rawRows{relations: map[int64]*change.Relation{}}
	for g := range r.NumRowGroups() {
		if err := rows.group(r, r.RowGroup(g)); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotRaw, err)
		}
	}
	return rows.changes, nil
}

type rawRows struct {
	changes   []change.Change
	relations map[int64]*change.Relation // by announcement
}

// group adds the rows of one row group.
func (w *rawRows) group(f *file.Reader, g *file.RowGroupReader) error {
	c := groupColumns{file: f, group: g}
	position, operation, message := c.texts("position"), c.texts("operation"), c.texts("message")
	relation := c.texts("relation")
	lsn, xid, committed, received, announcement := c.ints("lsn"), c.ints("xid"), c.ints("commit_time"), c.ints("timestamp"), c.ints("announcement")
	joined := c.bools("joined")
	if c.err != nil {
		return c.err
	}
	for i := range int(g.NumRows()) {
		row := change.Change{
			LSN: change.LSN(lsn[i]), XID: uint32(xid[i]), CommitTime: change.Time(committed[i]), Received: change.Time(received[i]),
			Joined: joined[i], Raw: bytes.Clone(message[i]),
		}
		var err error
		if row.Position, err = change.ParsePosition(string(position[i])); err != nil {
			return err
		}
		if row.Operation, err = operationOf(string(operation[i])); err != nil {
			return err
		}
		if row.Relation, err = w.relation(announcement[i], relation[i]); err != nil {
			return fmt.Errorf("the table of the change at position %s: %w", row.Position, err)
		}
		w.changes = append(w.changes, row)
	}
	return nil
}

func (w *rawRows) relation(number int64, text []byte) (*change.Relation, error) {
	if number == 0 {
		return nil, nil
	}
	if r := w.relations[number]; r != nil {
		return r, nil
	}
	r := new(change.Relation)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, err
	}
	w.relations[number] = r
	return r, nil
}

func operationOf(word string) (change.Operation, error) {
	for op := change.Insert; op <= change.Message; op++ {
		if op.String() == word {
			return op, nil
		}
	}
	return 0, fmt.Errorf("%q is no operation", word)
}

// groupColumns reads whole columns of a row group, and keeps the first error.
type groupColumns struct {
	file  *file.Reader
	group *file.RowGroupReader
	err   error
}

// column opens a column by its name.
func (c *groupColumns) column(name string) (file.ColumnChunkReader, bool) {
	if c.err != nil {
		return nil, false
	}
	i := c.file.MetaData().Schema.ColumnIndexByName(name)
	if i < 0 {
		c.err = fmt.Errorf("it has no column %s", name)
		return nil, false
	}
	var r file.ColumnChunkReader
	if r, c.err = c.group.Column(i); c.err != nil {
		return nil, false
	}
	return r, true
}

// texts reads a column of byte arrays; nil is null.
func (c *groupColumns) texts(name string) []parquet.ByteArray {
	r, ok := c.column(name)
	if !ok {
		return nil
	}
	column, ok := r.(*file.ByteArrayColumnChunkReader)
	if !ok {
		c.err = fmt.Errorf("its column %s is of another type", name)
		return nil
	}
	n := c.group.NumRows()
	values, levels := make([]parquet.ByteArray, n), make([]int16, n)
	read := c.all(name, n, func(done, valued int64) (int64, int, error) {
		return column.ReadBatch(n-done, values[valued:], levels[done:], nil)
	})
	defined := r.Descriptor().MaxDefinitionLevel()
	if c.err != nil || defined == 0 {
		return values
	}
	// The values stand together, without the nulls between them.
	spread := make([]parquet.ByteArray, n)
	next := int64(0)
	for i, level := range levels {
		if level == defined && next < read {
			spread[i] = values[next]
			next++
		}
	}
	return spread
}

// ints reads a column of required integers.
func (c *groupColumns) ints(name string) []int64 {
	r, ok := c.column(name)
	if !ok {
		return nil
	}
	column, ok := r.(*file.Int64ColumnChunkReader)
	if !ok {
		c.err = fmt.Errorf("its column %s is of another type", name)
		return nil
	}
	n := c.group.NumRows()
	values := make([]int64, n)
	c.all(name, n, func(done, _ int64) (int64, int, error) { return column.ReadBatch(n-done, values[done:], nil, nil) })
	return values
}

// bools reads a column of required booleans.
func (c *groupColumns) bools(name string) []bool {
	r, ok := c.column(name)
	if !ok {
		return nil
	}
	column, ok := r.(*file.BooleanColumnChunkReader)
	if !ok {
		c.err = fmt.Errorf("its column %s is of another type", name)
		return nil
	}
	n := c.group.NumRows()
	values := make([]bool, n)
	c.all(name, n, func(done, _ int64) (int64, int, error) { return column.ReadBatch(n-done, values[done:], nil, nil) })
	return values
}

// all calls read until n rows are there, and gives the number of values.
func (c *groupColumns) all(name string, n int64, read func(rows, values int64) (int64, int, error)) int64 {
	var rows, values int64
	for rows < n {
		r, v, err := read(rows, values)
		if err == nil && r == 0 {
			err = fmt.Errorf("it ends after %d of %d rows", rows, n)
		}
		if err != nil {
			c.err = fmt.Errorf("read the column %s: %w", name, err)
			return values
		}
		rows, values = rows+r, values+int64(v)
	}
	return values
}
