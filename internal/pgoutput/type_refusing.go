//go:build tidemark_refuse_marker

// This is a decoder that fails on purpose, in no build that anybody is given:
// the end-to-end tests build it to see what becomes of a message that no
// decoder understands, and of a worker that is killed while it decodes.

package pgoutput

import (
	"bytes"
	"fmt"
	"os"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// checkType refuses messages that hold a marker, and never comes to the end of
// those that hold another.
func checkType(c *change.Change) error {
	if bytes.Contains(c.Raw, []byte("a message that no decoder finishes")) {
		fmt.Fprintln(os.Stderr, "decoding the marker that this build never finishes")
		select {}
	}
	if bytes.Contains(c.Raw, []byte("a message that no decoder understands")) {
		return malformed("it holds the marker that this build refuses")
	}
	return nil
}
