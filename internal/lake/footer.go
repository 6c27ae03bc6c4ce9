package lake

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/parquet/metadata"
)

// tailLen is how much of an object's end is read at first: with the file's
// metadata in it for the dozen columns and few row groups of a segment.
const tailLen = 16 << 10

// maxFooter bounds the memory that reading one footer takes, in bytes.
const maxFooter = 64 << 20

// A Parquet file ends with its metadata (Thrift, compact), the metadata's
// length (4 bytes, little-endian) and a magic word. Source: the Parquet format
// specification, "File format".
const (
	footerEnd = 8
	magic     = "PAR1"
)

// ErrUnreadable: an object is not a Parquet file with Tidemark's metadata.
var ErrUnreadable = errors.New("not a Parquet file that Tidemark wrote")

// ReadMetadata reads what the object under key says of itself, from the end of
// the file only. ErrNotFound, ErrUnreadable, or a failure of the store.
func (l *Lake) ReadMetadata(ctx context.Context, key string) (Metadata, error) {
	info, err := l.store.Head(ctx, key)
	if err != nil {
		return Metadata{}, fmt.Errorf("read metadata: %w", err)
	}
	m, err := l.readMetadata(ctx, info)
	if err != nil {
		return Metadata{}, fmt.Errorf("read metadata of %s: %w", key, err)
	}
	return m, nil
}

func (l *Lake) readMetadata(ctx context.Context, info Info) (Metadata, error) {
	return readFooter(info.Size, func(offset, length int64) ([]byte, error) {
		return l.store.GetRange(ctx, info.Key, offset, length)
	})
}

// readFooter reads the metadata of a file of the given size through read.
func readFooter(size int64, read func(offset, length int64) ([]byte, error)) (Metadata, error) {
	if size < footerEnd+int64(len(magic)) {
		return Metadata{}, fmt.Errorf("%w: it has only %d bytes", ErrUnreadable, size)
	}
	n := min(size, tailLen)
	tail, err := read(size-n, n)
	if err != nil {
		return Metadata{}, err
	}
	end := tail[n-footerEnd:]
	if string(end[4:]) != magic {
		return Metadata{}, fmt.Errorf("%w: it does not end with %s", ErrUnreadable, magic)
	}
	length := int64(binary.LittleEndian.Uint32(end))
	if length > maxFooter || length > size-footerEnd-int64(len(magic)) {
		return Metadata{}, fmt.Errorf("%w: its footer claims to have %d bytes", ErrUnreadable, length)
	}
	if length+footerEnd > n {
		n = length + footerEnd
		if tail, err = read(size-n, n); err != nil {
			return Metadata{}, err
		}
	}
	return parseFooter(tail[n-footerEnd-length : n-footerEnd])
}

// parseFooter reads the file metadata out of the Thrift structure b.
func parseFooter(b []byte) (m Metadata, err error) {
	// The decoder of the Parquet library panics on some damaged input.
	defer func() {
		if r := recover(); r != nil {
			m, err = Metadata{}, fmt.Errorf("%w: %v", ErrUnreadable, r)
		}
	}()
	file, err := metadata.NewFileMetaData(b, nil)
	if err != nil {
		return Metadata{}, fmt.Errorf("%w: %v", ErrUnreadable, err)
	}
	var kvs [][2]string
	for _, kv := range file.KeyValueMetadata() {
		kvs = append(kvs, [2]string{kv.GetKey(), kv.GetValue()})
	}
	if m, err = ParseMetadata(kvs); err != nil {
		return Metadata{}, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	if rows := file.GetNumRows(); rows != m.Rows {
		return Metadata{}, fmt.Errorf("%w: it has %d rows and says that it has %d", ErrUnreadable, rows, m.Rows)
	}
	return m, nil
}
