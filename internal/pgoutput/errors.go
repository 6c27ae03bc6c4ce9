package pgoutput

import (
	"encoding/hex"
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

// excerptBytes bounds what Excerpt shows: the type, the table's OID and the
// beginning of the first tuple.
const excerptBytes = 64

// Excerpt gives the length of a raw message and its first 64 bytes in hex, for
// errors. An error has no other row data, and so no more of it than this: it
// stands in histories and logs, which more people read than may read the rows.
func Excerpt(raw []byte) string {
	if len(raw) <= excerptBytes {
		return fmt.Sprintf("the message has %d bytes, in hex %s", len(raw), hex.EncodeToString(raw))
	}
	return fmt.Sprintf("the message has %d bytes, the first %d in hex %s", len(raw), excerptBytes, hex.EncodeToString(raw[:excerptBytes]))
}
