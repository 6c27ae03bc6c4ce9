package segment

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// Hasher computes a Digest, change by change in stream order, so that a segment
// can be digested while its changes are still arriving.
//
// Hashed per change, integers big-endian and of fixed width: timeline (4
// bytes), commit LSN (8), ordinal (8), xid (4), commit time in microseconds
// since 1970 (8), operation (1), relation hash (8, zero where there is none),
// length of the raw message (8), the raw message. Not hashed: the time of
// reading and the change's own LSN, which differ from one connection to the
// next, and Relation and Type messages, whose repetition does.
//
// The zero Hasher is not ready; use NewHasher. Not safe for concurrent use.
type Hasher struct {
	h     *xxhash.Digest
	rows  int64
	bytes int64
	buf   [49]byte
}

// NewHasher returns a Hasher of an empty segment.
func NewHasher() *Hasher { return &Hasher{h: xxhash.New()} }

// Add takes in the next change. It keeps no reference to c.
func (h *Hasher) Add(c *change.Change) {
	b := h.buf[:]
	binary.BigEndian.PutUint32(b[0:], uint32(c.Position.Timeline))
	binary.BigEndian.PutUint64(b[4:], uint64(c.Position.LSN))
	binary.BigEndian.PutUint64(b[12:], c.Position.Ordinal)
	binary.BigEndian.PutUint32(b[20:], c.XID)
	binary.BigEndian.PutUint64(b[24:], uint64(c.CommitTime))
	b[32] = byte(c.Operation)
	var rel uint64
	if c.Relation != nil {
		rel = c.Relation.Hash
	}
	binary.BigEndian.PutUint64(b[33:], rel)
	binary.BigEndian.PutUint64(b[41:], uint64(len(c.Raw)))
	h.h.Write(b)
	h.h.Write(c.Raw)
	h.rows++
	h.bytes += int64(len(c.Raw))
}

// Rows and Bytes count what Add took in.
func (h *Hasher) Rows() int64  { return h.rows }
func (h *Hasher) Bytes() int64 { return h.bytes }

// Sum is the digest of everything taken in so far.
func (h *Hasher) Sum() Digest { return Digest(h.h.Sum64()) }
