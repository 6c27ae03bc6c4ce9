package rowfile

import (
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/tidemark-cdc/tidemark/internal/pgoutput"
)

const (
	// A chunk is what is collected before the Parquet writer gets it: this many
	// rows or bytes, whichever comes first. It also bounds a page, since the
	// Parquet writer looks at a page's size only between batches.
	chunkRows  = 1024
	chunkBytes = 1 << 20
	// maxKept bounds the buffers that are kept for the next chunk.
	maxKept = 4 << 20
	// maxValue bounds one value: a Parquet page counts its bytes in an int32,
	// and the rest of a chunk can share the page.
	maxValue = 1<<31 - 4<<20
	// rowBytes is what a row takes beside its images and messages.
	rowBytes = 64

	defaultRowGroupBytes = 128 << 20
)

// ErrTooLarge says that one image is larger than a Parquet page can be, which
// is just under 2 GiB. It is permanent.
var ErrTooLarge = errors.New("value is larger than a Parquet page can be")

// Options of a file.
type Options struct {
	// Metadata is written to the footer, in this order: keys and values.
	Metadata [][2]string
	// RowGroupBytes is the size in bytes, before encoding and compression, at
	// which a row group ends. Default 128 MiB.
	RowGroupBytes int64
	// ReadBack is asked for unchanged TOASTed values that the changes do not
	// have. Nil asks nobody.
	ReadBack pgoutput.ReadBack
}

// Stats of a finished file.
type Stats struct {
	Rows      int64
	RowGroups int
	// Bytes is the size of the file, RawBytes that of the rows before encoding
	// and compression.
	Bytes    int64
	RawBytes int64
}

// sheet writes rows that are collected in columns. Once it has failed it
// returns the same error for good, so that no file is finished that lacks rows.
type sheet struct {
	columns []column
	limit   int64

	sink  *counter
	file  *file.Writer
	group file.BufferedRowGroupWriter

	chunk      int // rows in the chunk
	chunkBytes int64
	groupBytes int64
	stats      Stats
	err        error
}

func (s *sheet) reset(w io.Writer, fields []field, opts Options) error {
	s.limit = opts.RowGroupBytes
	if s.limit <= 0 {
		s.limit = defaultRowGroupBytes
	}
	s.sink, s.group = &counter{w: w}, nil
	s.chunk, s.chunkBytes, s.groupBytes = 0, 0, 0
	s.stats, s.err = Stats{}, nil
	root, props := declare(fields)
	for _, c := range s.columns {
		c.reset()
	}
	var err error
	if s.file, err = file.NewParquetWriterWithError(s.sink, root, file.WithWriterProps(props)); err != nil {
		return s.fail(fmt.Errorf("begin a Parquet file: %w", err))
	}
	for _, kv := range opts.Metadata {
		if err := s.file.AppendKeyValueMetadata(kv[0], kv[1]); err != nil {
			return s.fail(fmt.Errorf("add metadata %s to a Parquet file: %w", kv[0], err))
		}
	}
	return nil
}

// row ends a row of the given size in bytes.
func (s *sheet) row(size int64) error {
	if s.err != nil {
		return s.err
	}
	s.chunk++
	s.chunkBytes += size
	s.stats.Rows++
	s.stats.RawBytes += size
	if s.chunk >= chunkRows || s.chunkBytes >= chunkBytes {
		return s.flush()
	}
	return nil
}

// flush hands the chunk to the Parquet writer.
func (s *sheet) flush() error {
	if s.chunk == 0 {
		return nil
	}
	if s.group == nil {
		g, err := s.file.AppendBufferedRowGroupChecked()
		if err != nil {
			return s.fail(fmt.Errorf("begin a Parquet row group: %w", err))
		}
		s.group = g
	}
	for i, c := range s.columns {
		w, err := s.group.Column(i)
		if err == nil {
			err = c.flush(w)
		}
		if err != nil {
			return s.fail(fmt.Errorf("write Parquet column %d: %w", i, err))
		}
	}
	s.groupBytes += s.chunkBytes
	s.chunk, s.chunkBytes = 0, 0
	if s.groupBytes >= s.limit {
		if err := s.group.Close(); err != nil {
			return s.fail(fmt.Errorf("end a Parquet row group: %w", err))
		}
		s.group, s.groupBytes = nil, 0
	}
	return nil
}

func (s *sheet) close() (Stats, error) {
	if s.err != nil {
		return Stats{}, s.err
	}
	if err := s.flush(); err != nil {
		return Stats{}, err
	}
	groups := s.file.NumRowGroups()
	if err := s.file.Close(); err != nil {
		return Stats{}, s.fail(fmt.Errorf("end a Parquet file: %w", err))
	}
	s.fail(errors.New("write to a Parquet file that was closed"))
	s.stats.RowGroups, s.stats.Bytes = groups, s.sink.n
	return s.stats, nil
}

func (s *sheet) fail(err error) error {
	s.err = err
	return err
}

// counter counts what goes through, and keeps the Parquet writer from closing
// the writer below.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
