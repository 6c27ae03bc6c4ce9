package main

import (
	"log/slog"
	"runtime/debug"
	"strings"

	"github.com/tidemark-cdc/tidemark/internal/config"
)

const mebibyte = 1 << 20

// What a process needs beside the bytes that its configuration bounds. Measured
// with make bench; docs/operations.md tells what comes of it.
const (
	// streamerBase is for everything but the ring: connections, the data
	// plane's buffers, the runtime, and garbage between two collections.
	streamerBase = 32 * mebibyte
	// ringShare is the part of the ring, one in so many bytes, by which what it
	// allocates may be more than what it counts: ends of slabs and pages.
	ringShare  = 16
	workerBase = 64 * mebibyte
	// An upload has its rows several times, as they came, as columns, as
	// compressed pages and as a body that grows; and a compressor, and what it
	// is storing.
	uploadCopies = 4
	uploadBase   = 24 * mebibyte
)

// memoryLimit is the soft limit for the Go runtime, in bytes. Without it the
// collector lets the heap grow to twice what is in use: with a full ring, to
// twice the ring. With it the collector only works more often while the ring is
// nearly full.
func memoryLimit(c *config.Config, r roles) int64 {
	var limit int64
	if r.streamer {
		ring := int64(c.Ring.MaxBytes)
		limit += ring + ring/ringShare + streamerBase
	}
	if r.worker {
		limit += workerBase + uploadCopies*uploadBytes(c) + c.Worker.Concurrency*uploadBase
	}
	return limit
}

// uploadBytes are the raw bytes that a worker's uploads may have in hand at once:
// what half of them have if every segment is as large as one is cut. The others
// wait for their store meanwhile, with no more than what it takes. A single row
// may be larger: then fewer are uploaded at the same time.
func uploadBytes(c *config.Config) int64 {
	return (c.Worker.Concurrency + 1) / 2 * int64(c.Segment.MaxBytes)
}

// limitMemory sets the limit, unless GOMEMLIMIT has set one already.
func limitMemory(c *config.Config, r roles, environ []string, logger *slog.Logger) {
	for _, v := range environ {
		if value, ok := strings.CutPrefix(v, "GOMEMLIMIT="); ok && value != "" {
			logger.Debug("the memory limit is GOMEMLIMIT's", "limit", value)
			return
		}
	}
	limit := memoryLimit(c, r)
	debug.SetMemoryLimit(limit)
	logger.Debug("memory limit set", "mib", limit/mebibyte)
}
