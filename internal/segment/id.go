//go:build !tidemark_naive_id

package segment

// WorkflowID is the ID under which Temporal keeps the segment, and so the
// durable record of its boundary: whoever comes to the same first position meets
// it. id_naive.go is what happens otherwise.
func (r Ref) WorkflowID() string { return WorkflowID(r.Pipeline, r.First) }
