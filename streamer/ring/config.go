package ring

import (
	"time"
	"unsafe"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// Defaults of Config.
const (
	DefaultMaxBytes     = 256 << 20
	DefaultSegmentRows  = 10_000
	DefaultSegmentBytes = 16 << 20
	DefaultMaxAge       = 10 * time.Second
)

// Overhead is what a change costs in the ring beside its raw bytes: its entry
// in a page and, if it is a transaction and a day of its own, a marker and a
// day change, each in a queue that may be half empty. In bytes.
//
// Not counted: what the runtime rounds allocations up to, and the unused ends
// of pages and slabs. A few percent as a rule, a third at worst.
const Overhead = int64(unsafe.Sizeof(change.Change{}) + 2*unsafe.Sizeof(marker{}) + 2*unsafe.Sizeof(uint64(0)))

// Config bounds a Ring and its segments. A value of zero or less means the
// default.
type Config struct {
	// MaxBytes bounds the changes in the ring: their raw bytes, and Overhead
	// for each. Default 256 MiB. See Admit for what may exceed it.
	MaxBytes int64
	// MaxChanges bounds the number of changes in the ring. Default none.
	MaxChanges int
	// SegmentRows is the most changes that a segment has. Default 10,000. Only
	// the tables of one TRUNCATE may be more.
	SegmentRows int
	// SegmentBytes is the most raw bytes that a segment has. Default 16 MiB.
	// Only a single change and the tables of one TRUNCATE may be more.
	SegmentBytes int64
	// MaxAge is how old the oldest waiting change may grow before its segment
	// is closed. Default 10 s.
	MaxAge time.Duration
}

func (c Config) withDefaults() Config {
	if c.MaxBytes <= 0 {
		c.MaxBytes = DefaultMaxBytes
	}
	if c.SegmentRows <= 0 {
		c.SegmentRows = DefaultSegmentRows
	}
	if c.SegmentBytes <= 0 {
		c.SegmentBytes = DefaultSegmentBytes
	}
	if c.MaxAge <= 0 {
		c.MaxAge = DefaultMaxAge
	}
	return c
}

// Start is where a Ring takes up the stream: what the lake's own record says
// is done.
type Start struct {
	// Last is the last position that is done. It and everything below is
	// dropped when it comes again.
	Last change.Position
	// Time is the commit time of the change at Last.
	Time change.Time
	// Ack is the LSN that was acknowledged with it.
	Ack change.LSN
}

// Ack is what may be told to Postgres and written into the lake's own record.
type Ack struct {
	// LSN is the end of the last transaction, or keepalive, before which
	// everything is finished. It never decreases.
	LSN change.LSN
	// Last is the position of the last change before that point: everything at
	// or below it is finished, and it is the last of its transaction.
	Last change.Position
	// Time is the commit time of the change at Last.
	Time change.Time
}
