package rowfile

import (
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/parquet"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/pgoutput"
)

// Writer decodes changes and writes them as the rows of an object. Not safe for
// concurrent use.
type Writer struct {
	sheet   sheet
	decoder *pgoutput.Decoder
	names   names

	table      texts
	operation  texts
	timestamp  ints
	lsn        ints
	before     texts
	after      texts
	commitTime ints
	commitLSN  ints
	ordinal    ints
	xid        ints
	unchanged  lists
	readBack   lists
}

func rowFields() []field {
	required, optional := parquet.Repetitions.Required, parquet.Repetitions.Optional
	return []field{
		textField("table", optional, true, true),
		textField("operation", required, true, true),
		timeField("timestamp"),
		intField("lsn"),
		textField("before", optional, false, false),
		textField("after", optional, false, false),
		timeField("commit_time"),
		intField("commit_lsn"),
		intField("ordinal"),
		intField("xid"),
		textListField("unchanged"),
		textListField("read_back"),
	}
}

// NewWriter begins a file. The Writer never closes w.
func NewWriter(w io.Writer, opts Options) (*Writer, error) {
	wr := &Writer{}
	wr.table.optional, wr.before.optional, wr.after.optional = true, true, true
	// In the order of rowFields.
	wr.sheet.columns = []column{
		&wr.table, &wr.operation, &wr.timestamp, &wr.lsn, &wr.before, &wr.after,
		&wr.commitTime, &wr.commitLSN, &wr.ordinal, &wr.xid, &wr.unchanged, &wr.readBack,
	}
	if err := wr.Reset(w, opts); err != nil {
		return nil, err
	}
	return wr, nil
}

// Reset begins another file, whatever became of the last one, and reuses the
// buffers.
func (w *Writer) Reset(out io.Writer, opts Options) error {
	w.decoder, w.names = pgoutput.NewDecoder(), newNames()
	w.decoder.SetReadBack(opts.ReadBack)
	return w.sheet.reset(out, rowFields(), opts)
}

// Write adds changes in stream order, all of one segment. They and their Raw stay
// as they are until the file is done: an unchanged TOASTed value is looked for in
// the changes before it. A change that cannot be decoded is
// pgoutput.ErrMalformed, one that does not fit into Parquet ErrTooLarge; both
// show the beginning of its message, see pgoutput.Excerpt. After any error the file is lost, and Write and Close go on returning it.
func (w *Writer) Write(changes []change.Change) error {
	if w.sheet.err == nil {
		w.decoder.Follow(changes)
	}
	for i := range changes {
		if w.sheet.err != nil {
			return w.sheet.err
		}
		if err := w.write(&changes[i]); err != nil {
			if errors.Is(err, pgoutput.ErrMalformed) || errors.Is(err, ErrTooLarge) {
				err = fmt.Errorf("%w (%s)", err, pgoutput.Excerpt(changes[i].Raw))
			}
			return w.sheet.fail(err)
		}
	}
	return nil
}

func (w *Writer) write(c *change.Change) error {
	row, err := w.decoder.Decode(c)
	if err != nil {
		return err
	}
	before, err := w.before.image(row.HasBefore(), row.AppendBefore)
	if err != nil {
		return fmt.Errorf("encode before of the change at position %s: %w", c.Position, err)
	}
	after, err := w.after.image(row.HasAfter(), row.AppendAfter)
	if err != nil {
		return fmt.Errorf("encode after of the change at position %s: %w", c.Position, err)
	}
	w.table.name(w.names.table(c.Relation))
	w.operation.add(w.names.operation(c.Operation))
	w.timestamp.add(int64(c.Received))
	w.lsn.add(int64(c.LSN))
	w.commitTime.add(int64(c.CommitTime))
	w.commitLSN.add(int64(c.Position.LSN))
	w.ordinal.add(int64(c.Position.Ordinal))
	w.xid.add(int64(c.XID))
	w.unchanged.add(row.Unchanged())
	w.readBack.add(row.ReadBack())
	return w.sheet.row(rowBytes + before + after)
}

// Close ends the file, and lets go of the changes. The writer below stays open.
func (w *Writer) Close() (Stats, error) {
	w.decoder = nil // sheet refuses whatever would need it
	return w.sheet.close()
}

// image collects an image, or null if there is none, and gives its size.
func (c *texts) image(exists bool, appendTo func([]byte) ([]byte, error)) (int64, error) {
	if !exists {
		c.null()
		return 0, nil
	}
	start := len(c.arena)
	arena, err := appendTo(c.arena)
	if err != nil {
		return 0, err
	}
	c.arena = arena
	return c.end(start)
}
