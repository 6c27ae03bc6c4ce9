package lake

import (
	"fmt"
	"strconv"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// FormatVersion is the version of the lake's format that this code writes. It
// reads this one and all before.
const FormatVersion = 1

// Metadata is what an object says of itself, in its Parquet footer and nowhere
// else.
type Metadata struct {
	Pipeline string
	SystemID string
	// First and Last are the positions of its first and last change, and
	// Follows the last position of the segment before.
	First, Last, Follows change.Position
	// Rows counts its changes.
	Rows   int64
	Digest segment.Digest
	// Format is the version of the lake's format.
	Format int
}

// MetadataOf is the metadata of a segment's object.
func MetadataOf(ref segment.Ref) Metadata {
	return Metadata{
		Pipeline: ref.Pipeline, SystemID: ref.SystemID,
		First: ref.First, Last: ref.Last, Follows: ref.Follows,
		Rows: ref.Rows, Digest: ref.Digest, Format: FormatVersion,
	}
}

// metadataField is one entry of the footer: its key, how it is printed, how it
// is read.
type metadataField struct {
	key   string
	print func(*Metadata) string
	read  func(*Metadata, string) error
}

func metadataFields() []metadataField {
	position := func(key string, of func(*Metadata) *change.Position) metadataField {
		return metadataField{key,
			func(m *Metadata) string { return of(m).String() },
			func(m *Metadata, s string) (err error) { *of(m), err = change.ParsePosition(s); return err }}
	}
	text := func(key string, of func(*Metadata) *string) metadataField {
		return metadataField{key,
			func(m *Metadata) string { return *of(m) },
			func(m *Metadata, s string) error { *of(m) = s; return nil }}
	}
	return []metadataField{
		text("tidemark.pipeline", func(m *Metadata) *string { return &m.Pipeline }),
		text("tidemark.system_id", func(m *Metadata) *string { return &m.SystemID }),
		position("tidemark.first", func(m *Metadata) *change.Position { return &m.First }),
		position("tidemark.last", func(m *Metadata) *change.Position { return &m.Last }),
		position("tidemark.follows", func(m *Metadata) *change.Position { return &m.Follows }),
		{"tidemark.rows",
			func(m *Metadata) string { return strconv.FormatInt(m.Rows, 10) },
			func(m *Metadata, s string) (err error) { m.Rows, err = strconv.ParseInt(s, 10, 64); return err }},
		{"tidemark.digest",
			func(m *Metadata) string { return m.Digest.String() },
			func(m *Metadata, s string) (err error) { m.Digest, err = segment.ParseDigest(s); return err }},
		{"tidemark.format",
			func(m *Metadata) string { return strconv.Itoa(m.Format) },
			func(m *Metadata, s string) (err error) { m.Format, err = strconv.Atoi(s); return err }},
	}
}

// KeyValues is the metadata as the footer's key-value pairs, always in the same
// order.
func (m Metadata) KeyValues() [][2]string {
	fields := metadataFields()
	kvs := make([][2]string, len(fields))
	for i, f := range fields {
		kvs[i] = [2]string{f.key, f.print(&m)}
	}
	return kvs
}

// ParseMetadata reads what KeyValues gives, among other pairs and in any order.
// A key that is missing, there twice or not readable is an error, and so is a
// format version above FormatVersion.
func ParseMetadata(kvs [][2]string) (Metadata, error) {
	var m Metadata
	for _, f := range metadataFields() {
		n := 0
		for _, kv := range kvs {
			if kv[0] != f.key {
				continue
			}
			n++
			if err := f.read(&m, kv[1]); err != nil {
				return Metadata{}, fmt.Errorf("file metadata %s: %w", f.key, err)
			}
		}
		if n != 1 {
			return Metadata{}, fmt.Errorf("file metadata %s: it is there %d times, not once: the file was not written by Tidemark", f.key, n)
		}
	}
	switch {
	case m.Format < 1 || m.Format > FormatVersion:
		return Metadata{}, fmt.Errorf("file metadata tidemark.format: version %d is not known here (newest known: %d): use a newer Tidemark", m.Format, FormatVersion)
	case m.Last.Less(m.First) || !m.Follows.Less(m.First) || m.Rows < 1:
		return Metadata{}, fmt.Errorf("file metadata: first %s, last %s, follows %s and %d rows do not fit together", m.First, m.Last, m.Follows, m.Rows)
	}
	return m, nil
}
