//go:build !tidemark_naive_id

package segment

import "github.com/tidemark-cdc/tidemark/internal/change"

// WorkflowID is the ID of the segment of a pipeline that begins at first: the
// same for whoever comes there, so that a replay meets what was recorded.
// id_naive.go is what happens otherwise.
func WorkflowID(pipeline string, first change.Position) string {
	return "tidemark/" + pipeline + "/" + first.String()
}
