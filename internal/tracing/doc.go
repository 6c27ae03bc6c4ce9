// Package tracing makes the spans of a pipeline's traces and sends them to a
// collector by OTLP. It is the only package that knows OpenTelemetry; what
// spans there are is the affair of its callers in cmd/tidemark.
//
// There is one trace per segment. Its ID, and that of its root span, follow from
// the segment's reference, so that every process that has to do with a segment,
// before or after a crash, adds to the same trace without having been told of
// it. What travels with a workflow is a Node: the place below which a worker's
// spans belong, and whether the trace is sampled, which the streamer decides.
//
// Spans are told of when they have ended (Emit). So nothing is held open while a
// segment waits, and nothing is lost by a crash but what has not ended yet. Emit
// never waits: what a collector does not take in time is dropped and logged.
package tracing
