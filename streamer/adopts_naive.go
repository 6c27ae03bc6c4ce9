//go:build tidemark_naive_adopt

// This is a bug kept on purpose, in no build that anybody is given: the chaos
// tests build it to show that they see the rows that it loses and doubles.

package streamer

// adopts is off: a segment that an earlier process has started is taken for the
// one that this process has cut at the same first position, and the lake is not
// looked at.
const adopts = false
