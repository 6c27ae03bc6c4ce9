//go:build !tidemark_refuse_marker

package pgoutput

import "github.com/tidemark-cdc/tidemark/internal/change"

// checkType says whether a row change's message, which is not empty, is of the
// type that belongs to its operation. type_refusing.go is what a decoder does
// that does not understand a message.
func checkType(c *change.Change) error {
	switch {
	case c.Raw[0] == 'T' && c.Operation == change.Truncate,
		c.Raw[0] == 'I' && c.Operation == change.Insert,
		c.Raw[0] == 'U' && c.Operation == change.Update,
		c.Raw[0] == 'D' && c.Operation == change.Delete:
		return nil
	}
	return malformed("a message of type %q is no %s", c.Raw[0], c.Operation)
}
