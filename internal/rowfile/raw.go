package rowfile

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/parquet"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// RawWriter writes changes undecoded, for quarantine. It takes every change,
// whatever its message holds. Not safe for concurrent use.
type RawWriter struct {
	sheet     sheet
	names     names
	relations map[*change.Relation]announced

	position   texts
	lsn        ints
	xid        ints
	commitTime ints
	timestamp  ints
	operation  texts
	table      texts
	joined     bools
	message    texts
	relation   texts
	// announcement tells two announcements of a table from each other that say
	// the same: images do not reach from one to the other.
	announcement ints
}

// announced is a relation version as it stands in the file.
type announced struct {
	text   []byte
	number int64 // from 1
}

func rawFields() []field {
	required, optional := parquet.Repetitions.Required, parquet.Repetitions.Optional
	return []field{
		textField("position", required, false, true),
		intField("lsn"),
		intField("xid"),
		timeField("commit_time"),
		timeField("timestamp"),
		textField("operation", required, true, true),
		textField("table", optional, true, true),
		boolField("joined"),
		bytesField("message"),
		textField("relation", optional, true, false),
		intField("announcement"),
	}
}

// NewRawWriter begins a file. The RawWriter never closes w.
func NewRawWriter(w io.Writer, opts Options) (*RawWriter, error) {
	wr := &RawWriter{names: newNames(), relations: make(map[*change.Relation]announced)}
	wr.table.optional, wr.relation.optional = true, true
	// In the order of rawFields.
	wr.sheet.columns = []column{
		&wr.position, &wr.lsn, &wr.xid, &wr.commitTime, &wr.timestamp,
		&wr.operation, &wr.table, &wr.joined, &wr.message, &wr.relation, &wr.announcement,
	}
	if err := wr.sheet.reset(w, rawFields(), opts); err != nil {
		return nil, err
	}
	return wr, nil
}

// Write adds changes in stream order. It keeps nothing of them, Raw included,
// once it has returned, but their relations. After an error the file is lost,
// and Write and Close go on returning it.
func (w *RawWriter) Write(changes []change.Change) error {
	for i := range changes {
		if w.sheet.err != nil {
			return w.sheet.err
		}
		if err := w.write(&changes[i]); err != nil {
			return w.sheet.fail(err)
		}
	}
	return nil
}

func (w *RawWriter) write(c *change.Change) error {
	relation, err := w.describe(c.Relation)
	if err != nil {
		return err
	}
	start := len(w.message.arena)
	w.message.arena = append(w.message.arena, c.Raw...)
	size, err := w.message.end(start)
	if err != nil {
		return fmt.Errorf("keep the message at position %s: %w", c.Position, err)
	}
	start = len(w.position.arena)
	w.position.arena = c.Position.AppendText(w.position.arena)
	if _, err := w.position.end(start); err != nil {
		return err
	}
	w.lsn.add(int64(c.LSN))
	w.xid.add(int64(c.XID))
	w.commitTime.add(int64(c.CommitTime))
	w.timestamp.add(int64(c.Received))
	w.operation.add(w.names.operation(c.Operation))
	w.table.name(w.names.table(c.Relation))
	w.joined.add(c.Joined)
	w.relation.name(relation.text)
	w.announcement.add(relation.number)
	return w.sheet.row(rowBytes + size)
}

// describe is the relation as JSON, with its number; zero for no relation.
func (w *RawWriter) describe(r *change.Relation) (announced, error) {
	if r == nil {
		return announced{}, nil
	}
	a, ok := w.relations[r]
	if !ok {
		text, err := json.Marshal(r)
		if err != nil {
			return announced{}, fmt.Errorf("describe table %s: %w", r.QualifiedName(), err)
		}
		a = announced{text: text, number: int64(len(w.relations)) + 1}
		w.relations[r] = a
	}
	return a, nil
}

// Close ends the file. The writer below stays open.
func (w *RawWriter) Close() (Stats, error) { return w.sheet.close() }
