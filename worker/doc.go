// Package worker is the composition root of a worker process: it registers the
// workflow and the activities under their stable names with the Temporal SDK's
// worker, runs it until it is told to stop, and drains it.
//
// A worker is stateless; add machines to add throughput. cmd/tidemark calls it,
// in a process of its own or beside the streamer.
package worker
