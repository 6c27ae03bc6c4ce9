package segment

import (
	"fmt"
	"strconv"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// MaxTables bounds Ref.Tables, so that a Ref stays small however many tables a
// segment has changes of.
const MaxTables = 16

// Ref is a segment's reference: everything that Temporal is told of it, and
// everything that the name and the metadata of its object are made of.
type Ref struct {
	Pipeline string `json:"pipeline"`
	// SystemID is the Postgres cluster's system identifier.
	SystemID string `json:"system_id"`
	// Lake is the lake's URL, bucket and prefix, without any secret.
	Lake string `json:"lake"`
	// First and Last are the positions of the segment's first and last change.
	// First <= Last, on the same timeline.
	First change.Position `json:"first"`
	Last  change.Position `json:"last"`
	// Follows is the last position of the segment before. Follows < First.
	Follows change.Position `json:"follows"`
	// Day is the UTC commit day of every change in the segment.
	Day change.Day `json:"day"`
	// Rows counts the changes; at least 1. Bytes is the sum of their raw
	// message lengths.
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	Digest Digest `json:"digest"`
	// Tables names up to MaxTables of the TableCount tables that the segment
	// has changes of, sorted, schema-qualified as Postgres prints them.
	Tables     []string `json:"tables,omitempty"`
	TableCount int      `json:"table_count"`
}

// WorkflowID is the ID under which Temporal keeps the segment, and so the
// durable record of its boundary.
func (r Ref) WorkflowID() string { return WorkflowID(r.Pipeline, r.First) }

// Validate refuses a reference that no streamer can have made.
func (r Ref) Validate() error {
	switch {
	case r.Pipeline == "" || r.Lake == "":
		return fmt.Errorf("segment %s: pipeline or lake is empty", r.First)
	case r.First.IsZero() || r.Last.Less(r.First):
		return fmt.Errorf("segment %s: its last position %s stands before its first", r.First, r.Last)
	case r.First.Timeline != r.Last.Timeline:
		return fmt.Errorf("segment %s: its last position %s is on another timeline", r.First, r.Last)
	case !r.Follows.Less(r.First):
		return fmt.Errorf("segment %s: it follows %s, which does not stand before it", r.First, r.Follows)
	case r.Rows < 1:
		return fmt.Errorf("segment %s: it has %d rows", r.First, r.Rows)
	}
	return nil
}

// Digest is xxhash64 over a segment's changes; see Hasher. Its text form is 16
// hexadecimal digits.
type Digest uint64

// String gives 16 lower-case hexadecimal digits.
func (d Digest) String() string { return fmt.Sprintf("%016x", uint64(d)) }

// ParseDigest reads what String prints.
func ParseDigest(s string) (Digest, error) {
	v, err := strconv.ParseUint(s, 16, 64)
	if err != nil || len(s) != 16 || Digest(v).String() != s {
		return 0, fmt.Errorf("parse digest %q: want 16 lower-case hexadecimal digits", s)
	}
	return Digest(v), nil
}

// MarshalText is String.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText is ParseDigest.
func (d *Digest) UnmarshalText(b []byte) (err error) {
	*d, err = ParseDigest(string(b))
	return err
}
