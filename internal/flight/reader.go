package flight

import (
	"errors"
	"io"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// reader is the Reader of one stream.
type reader struct {
	dec     *decoder
	address string
	ticket  segment.Ticket
	// failed turns an error of the stream into one of this side.
	failed func(error) error
	// end gives up the stream and the connection. Nil once it has been called.
	end func()
	err error
}

var errClosed = errors.New("the reader is closed")

// Next implements segment.Reader.
func (r *reader) Next() ([]change.Change, error) {
	if r.err != nil {
		return nil, r.err
	}
	cs, err := r.dec.next()
	switch {
	case err == nil:
		return cs, nil
	case r.dec.done && errors.Is(err, io.EOF):
		r.err = io.EOF
	default:
		r.err = fetchError(r.ticket, r.address, r.failed(err))
	}
	return nil, r.err
}

// Close implements segment.Reader. The changes are ordinary Go memory: they go
// when the last reference to them does.
func (r *reader) Close() error {
	if r.end != nil {
		r.end()
		r.end = nil
		r.err = errClosed
	}
	return nil
}
