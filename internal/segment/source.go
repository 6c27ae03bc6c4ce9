package segment

import (
	"context"
	"errors"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// Location says where the changes of a segment can be fetched.
type Location struct {
	// Instance is the streamer process' own name, new at every start. A worker
	// in the same process reads the ring directly.
	Instance string `json:"instance"`
	// Address is the host:port of the streamer's data plane.
	Address string `json:"address"`
}

// Ticket names the changes that a worker asks for.
type Ticket struct {
	Pipeline string          `json:"pipeline"`
	First    change.Position `json:"first"`
	Last     change.Position `json:"last"`
	Digest   Digest          `json:"digest"`
}

// Ticket is the ticket for r's changes.
func (r Ref) Ticket() Ticket {
	return Ticket{Pipeline: r.Pipeline, First: r.First, Last: r.Last, Digest: r.Digest}
}

// Why a segment's changes cannot be had now. All three are worth another try
// later, or at another streamer; errors.Is tells them apart on both sides of
// the data plane.
var (
	// ErrNotYet: the streamer knows the segment and has not read all of its
	// changes again from Postgres.
	ErrNotYet = errors.New("the streamer has not read these rows again yet")
	// ErrGone: the streamer had the changes and dropped them, because the
	// segment is finished.
	ErrGone = errors.New("the streamer has dropped these rows, since their segment is finished")
	// ErrUnknown: the streamer has no such segment.
	ErrUnknown = errors.New("the streamer does not know this segment")
)

// Source hands out the changes of segments. Implementations are safe for
// concurrent use.
type Source interface {
	// Fetch opens the changes that t names. The errors above are returned here
	// or by the Reader's first Next. Canceling ctx ends the Reader too.
	Fetch(ctx context.Context, t Ticket) (Reader, error)
}

// Reader iterates over the changes of one segment, in stream order. Not safe
// for concurrent use.
type Reader interface {
	// Next returns the next changes, at least one, or io.EOF after the last.
	// The changes and their Raw bytes stay as they are until Close, also when
	// the streamer goes on; they must not be written to.
	Next() ([]change.Change, error)
	// Close releases what Next returned. It may be called more than once.
	Close() error
}
