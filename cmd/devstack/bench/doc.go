// Package bench measures Tidemark on real parts: Postgres, Temporal and an S3
// gateway as the stack starts them, and the tidemark binary as a user runs it.
//
// Figures that depend on the machine are ratios within one run: against
// pg_recvlogical, which reads the same WAL from a slot at the same place and
// throws it away, and against the walsender that feeds the streamer. What is
// measured several times is given as median, least and greatest.
//
// The name of a figure is stable: bench.json of two commits can be compared.
package bench
