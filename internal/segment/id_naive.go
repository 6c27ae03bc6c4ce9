//go:build tidemark_naive_id

// This is a bug kept on purpose, in no build that anybody is given: the chaos
// tests build it to show that they see the rows that it doubles.

package segment

import (
	"crypto/rand"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

var process = rand.Text()

// WorkflowID is another one in each process, so that a replay does not meet what
// was recorded before.
func WorkflowID(pipeline string, first change.Position) string {
	return "tidemark/" + pipeline + "/" + first.String() + "/" + process
}
