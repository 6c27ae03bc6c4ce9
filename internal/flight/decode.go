package flight

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// ErrProtocol is in the errors of a stream that is not what the package comment
// says: the other end is of another version, or something changed the bytes on
// their way.
var ErrProtocol = errors.New("not a stream of Tidemark's data plane")

// decoder reads what encoder wrote. It trusts nothing that it reads: whatever
// comes gives changes or an error. Not safe for concurrent use.
//
// Raw of the changes aliases the memory of the batch they came in, which is
// ordinary Go memory (the transport's messages are never pooled, see
// flight.FlightData), so it stays as it is for as long as anyone holds it. Only
// a message that came in parts is copied.
type decoder struct {
	r      *flight.Reader
	maxRaw int

	relations []*change.Relation
	// part is the change of which parts are missing, if pending.
	part    change.Change
	pending bool
	length  int

	got  endMark
	done bool
}

// newDecoder waits for the first message. An error that is the stream's own is
// returned as it is.
func newDecoder(s flight.DataStreamReader) (*decoder, error) {
	r, err := flight.NewRecordReader(guarded{s})
	if errors.Is(err, io.EOF) {
		return nil, errCut(endMark{})
	}
	if err != nil {
		return nil, err
	}
	d := &decoder{r: r, maxRaw: maxRaw}
	if err := checkSchema(r.Schema()); err != nil {
		r.Release()
		return nil, err
	}
	return d, nil
}

func checkSchema(s *arrow.Schema) error {
	meta := s.Metadata()
	got, ok := meta.GetValue(versionKey)
	if !ok {
		return fmt.Errorf("%w: its schema names no version", ErrProtocol)
	}
	if got != fmt.Sprint(version) {
		return fmt.Errorf("%w: its version is %.20q, this worker speaks %d; run the same version of Tidemark on both sides", ErrProtocol, got, version)
	}
	want := wireSchema()
	if s.NumFields() != want.NumFields() {
		return fmt.Errorf("%w: %d columns, want %d", ErrProtocol, s.NumFields(), want.NumFields())
	}
	for i, f := range want.Fields() {
		g := s.Field(i)
		if g.Name != f.Name || !arrow.TypeEqual(g.Type, f.Type) {
			return fmt.Errorf("%w: column %d is %.40q of type %s, want %q of type %s", ErrProtocol, i, g.Name, g.Type, f.Name, f.Type)
		}
	}
	return nil
}

func (d *decoder) close() { d.r.Release() }

// next returns the next changes, at least one; io.EOF after the last, if the
// end mark has come and is right.
func (d *decoder) next() ([]change.Change, error) {
	for {
		if !d.r.Next() {
			return nil, d.ended()
		}
		if d.done {
			return nil, fmt.Errorf("%w: a batch after its end", ErrProtocol)
		}
		cs, err := d.batch(d.r.RecordBatch(), d.r.LatestAppMetadata())
		if err != nil {
			return nil, err
		}
		if len(cs) > 0 {
			return cs, nil
		}
	}
}

// ended says why there is no further batch.
func (d *decoder) ended() error {
	switch err := d.r.Err(); {
	case err != nil:
		return err
	case !d.done:
		return errCut(d.got)
	}
	return io.EOF
}

func errCut(got endMark) error {
	return fmt.Errorf("the stream was cut after %d rows: %w", got.Rows, io.ErrUnexpectedEOF)
}

func (d *decoder) batch(rec arrow.RecordBatch, meta []byte) ([]change.Change, error) {
	var m batchMeta
	if len(meta) > 0 {
		if err := json.Unmarshal(meta, &m); err != nil {
			return nil, fmt.Errorf("%w: metadata of a batch: %v", ErrProtocol, err)
		}
	}
	for _, r := range m.Relations {
		if r == nil {
			return nil, fmt.Errorf("%w: a relation is null", ErrProtocol)
		}
	}
	d.relations = append(d.relations, m.Relations...)
	cols, err := columnsOf(rec)
	if err != nil {
		return nil, err
	}
	if m.End != nil {
		return nil, d.end(*m.End, cols.rows)
	}
	return d.rows(cols)
}

func (d *decoder) end(e endMark, rows int) error {
	switch {
	case rows > 0:
		return fmt.Errorf("%w: %d rows beside its end", ErrProtocol, rows)
	case d.pending:
		return fmt.Errorf("%w: it ends inside change %s", ErrProtocol, d.part.Position)
	case e != d.got:
		return fmt.Errorf("%w: %d rows of %d bytes came, its end speaks of %d rows of %d bytes", ErrProtocol, d.got.Rows, d.got.Bytes, e.Rows, e.Bytes)
	}
	d.done = true
	return nil
}

// rows turns a batch into changes; the last one may become d.part.
func (d *decoder) rows(cols *batchColumns) ([]change.Change, error) {
	out := make([]change.Change, 0, cols.rows)
	for i := range cols.rows {
		c, length, err := d.row(cols, i)
		if err != nil {
			return nil, err
		}
		if d.pending {
			if err := d.join(&c, length); err != nil {
				return nil, err
			}
		} else if len(c.Raw) < length {
			d.part, d.pending, d.length = c, true, length
			// Its whole length at once: growing would copy it again and again.
			d.part.Raw = append(make([]byte, 0, length), c.Raw...)
		}
		if d.pending {
			if len(d.part.Raw) < d.length {
				if i != cols.rows-1 {
					return nil, fmt.Errorf("%w: change %s is incomplete before the last row of a batch", ErrProtocol, c.Position)
				}
				break
			}
			c = d.part
			d.part, d.pending = change.Change{}, false
		}
		out = append(out, c)
		d.got.Rows++
		d.got.Bytes += int64(len(c.Raw))
	}
	return out, nil
}

// join adds the part that c brings to the pending change.
func (d *decoder) join(c *change.Change, length int) error {
	p := &d.part
	same := c.Position == p.Position && c.LSN == p.LSN && c.CommitTime == p.CommitTime &&
		c.Received == p.Received && c.Relation == p.Relation && c.XID == p.XID &&
		c.Operation == p.Operation && c.Joined == p.Joined && length == d.length
	switch {
	case !same:
		return fmt.Errorf("%w: change %s comes before change %s is complete", ErrProtocol, c.Position, p.Position)
	case len(c.Raw) == 0 || len(p.Raw)+len(c.Raw) > d.length:
		return fmt.Errorf("%w: a part of %d bytes for change %s, of which %d of %d bytes are there", ErrProtocol, len(c.Raw), p.Position, len(p.Raw), d.length)
	}
	p.Raw = append(p.Raw, c.Raw...)
	return nil
}

// row reads row i, and the length of its whole message.
func (d *decoder) row(b *batchColumns, i int) (change.Change, int, error) {
	c := change.Change{
		Position: change.Position{
			Timeline: change.Timeline(b.timeline[i]),
			LSN:      change.LSN(b.commitLSN[i]),
			Ordinal:  b.ordinal[i],
		},
		LSN:        change.LSN(b.lsn[i]),
		CommitTime: change.Time(b.commitTime[i]),
		Received:   change.Time(b.received[i]),
		XID:        b.xid[i],
		Operation:  change.Operation(b.operation[i]),
		Joined:     b.flags[i]&flagJoined != 0,
	}
	switch {
	case c.Position.Ordinal > change.MaxOrdinal:
		return c, 0, fmt.Errorf("%w: ordinal %d", ErrProtocol, c.Position.Ordinal)
	case c.Operation < change.Insert || c.Operation > change.Message:
		return c, 0, fmt.Errorf("%w: change %s has operation %d", ErrProtocol, c.Position, c.Operation)
	case b.flags[i]&^flagJoined != 0:
		return c, 0, fmt.Errorf("%w: change %s has flags %#x", ErrProtocol, c.Position, b.flags[i])
	}
	switch n := b.relation[i]; {
	case n >= 0 && int(n) < len(d.relations):
		c.Relation = d.relations[n]
	case n != noRelation || c.Operation != change.Message:
		return c, 0, fmt.Errorf("%w: change %s refers to relation %d of %d", ErrProtocol, c.Position, n, len(d.relations))
	}
	from, to := b.offsets[i], b.offsets[i+1]
	if from < 0 || to < from || int(to) > len(b.raw) {
		return c, 0, fmt.Errorf("%w: change %s has bytes %d to %d of %d", ErrProtocol, c.Position, from, to, len(b.raw))
	}
	// The capacity ends with the message: an append must not reach the next.
	c.Raw = b.raw[from:to:to]
	length := b.length[i]
	if length > uint64(d.maxRaw) || uint64(len(c.Raw)) > length {
		return c, 0, fmt.Errorf("%w: change %s has %d bytes of %d, at most %d", ErrProtocol, c.Position, len(c.Raw), length, d.maxRaw)
	}
	return c, int(length), nil
}
