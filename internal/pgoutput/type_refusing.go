//go:build tidemark_refuse_marker

// This is a decoder that fails on purpose, in no build that anybody is given:
// the end-to-end tests build it to see what becomes of a message that no
// decoder understands.

package pgoutput

import (
	"bytes"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// checkType refuses messages that hold a marker.
func checkType(c *change.Change) error {
	if bytes.Contains(c.Raw, []byte("a message that no decoder understands")) {
		return malformed("it holds the marker that this build refuses")
	}
	return nil
}
