// Package tracker is the Temporal side of the streamer's dispatch: the durable
// record of every segment's boundary.
//
// A segment is one workflow, whose ID is made of the pipeline and the segment's
// first position, and whose memo holds the segment's reference. Temporal lets one
// workflow of an ID be open at a time and, asked so, refuses an ID that a closed
// one has used. That refusal is all the mutual exclusion there is: of two
// streamers at one position the second is told that the workflow exists, and
// reads the boundary that the first recorded.
//
// Records come from DescribeWorkflowExecution and from histories, never from
// Temporal's visibility store, which lags behind: only Unfinished, which no
// streamer calls, asks that which segments there are.
//
// Every method retries what another try can mend, with backoff, until its
// context ends, and says once that Temporal is unreachable and once that it is
// back. So a call returns a Record, an error that someone has to act on, or the
// context's end. The streamer declares the interface that Tracker implements.
package tracker
