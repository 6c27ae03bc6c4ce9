//go:build tidemark_naive_id

// This is a bug kept on purpose, in no build that anybody is given: the chaos
// tests build it to show that they see the rows that it doubles.

package segment

// WorkflowID is made of both ends of the segment, so that a replay which cuts
// otherwise does not meet what was recorded before.
func (r Ref) WorkflowID() string { return WorkflowID(r.Pipeline, r.First) + "/" + r.Last.String() }
