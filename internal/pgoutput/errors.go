package pgoutput

import (
	"errors"
	"fmt"
)

// ErrMalformed says that a message is not what protocol version 1 allows: cut
// short, of an unknown type, out of order, or not fitting its relation. Reading
// the same bytes again gives the same error, so it is permanent.
var ErrMalformed = errors.New("malformed pgoutput message")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}
