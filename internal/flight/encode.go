package flight

import (
	"encoding/json"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// encoder writes changes to a Flight stream. It copies what it is given, so
// that a source's Reader can be closed when add and end have returned. Not safe
// for concurrent use.
type encoder struct {
	w      *flight.Writer
	schema *arrow.Schema

	// Of the batch that is being built; bytes counts its raw messages and its
	// relations.
	batch     batchColumns
	bytes     int
	relations []json.RawMessage

	// Of the whole stream.
	numbers map[*change.Relation]int32
	total   endMark
}

func newEncoder(w flight.DataStreamWriter) *encoder {
	schema := wireSchema()
	e := &encoder{
		w:       flight.NewRecordWriter(w, ipc.WithSchema(schema)),
		schema:  schema,
		numbers: map[*change.Relation]int32{},
	}
	e.batch.reset()
	return e
}

// add sends the changes in cs, apart from those of a last unfinished batch.
func (e *encoder) add(cs []change.Change) error {
	for i := range cs {
		if err := e.addOne(&cs[i]); err != nil {
			return err
		}
	}
	return nil
}

func (e *encoder) addOne(c *change.Change) error {
	rel, err := e.number(c.Relation)
	if err != nil {
		return err
	}
	if len(c.Raw) > maxRaw {
		return fmt.Errorf("change %s: its message of %d bytes is longer than Postgres can send", c.Position, len(c.Raw))
	}
	if e.batch.rows > 0 && e.bytes+len(c.Raw) > maxBatchBytes {
		if err := e.flush(); err != nil {
			return err
		}
	}
	for rest := c.Raw; ; {
		part := rest[:min(len(rest), maxBatchBytes)]
		rest = rest[len(part):]
		e.batch.add(c, rel, part)
		e.bytes += len(part)
		if len(rest) > 0 || e.batch.rows == maxBatchRows {
			if err := e.flush(); err != nil {
				return err
			}
		}
		if len(rest) == 0 {
			break
		}
	}
	e.total.Rows++
	e.total.Bytes += int64(len(c.Raw))
	return nil
}

// number gives r's number in the stream, and adds r to the batch if it is new.
func (e *encoder) number(r *change.Relation) (int32, error) {
	if r == nil {
		return noRelation, nil
	}
	if n, ok := e.numbers[r]; ok {
		return n, nil
	}
	b, err := json.Marshal(r)
	if err != nil {
		return 0, fmt.Errorf("encode relation %s.%s: %w", r.Namespace, r.Name, err)
	}
	n := int32(len(e.numbers))
	e.numbers[r] = n
	e.relations = append(e.relations, b)
	e.bytes += len(b)
	return n, nil
}

// flush sends the batch as it stands, with the relations that are new in it.
func (e *encoder) flush() error {
	return e.send(nil)
}

// end sends what is left and the end mark.
func (e *encoder) end() error {
	if e.batch.rows > 0 || len(e.relations) > 0 {
		if err := e.flush(); err != nil {
			return err
		}
	}
	if err := e.send(&e.total); err != nil {
		return err
	}
	return e.w.Close()
}

func (e *encoder) send(end *endMark) error {
	var meta []byte
	if len(e.relations) > 0 || end != nil {
		var err error
		meta, err = json.Marshal(struct {
			Relations []json.RawMessage `json:"relations,omitempty"`
			End       *endMark          `json:"end,omitempty"`
		}{e.relations, end})
		if err != nil {
			return fmt.Errorf("encode the metadata of a batch: %w", err)
		}
	}
	rec := e.batch.record(e.schema)
	defer rec.Release()
	// The stream has its own copy when this returns: the transport's message.
	if err := e.w.WriteWithAppMetadata(rec, meta); err != nil {
		return err
	}
	e.batch.reset()
	e.bytes, e.relations = 0, nil
	return nil
}
