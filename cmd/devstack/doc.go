// Devstack starts everything that Tidemark needs on one machine: a Temporal
// server with its UI, an S3 gateway over a folder, and a private Postgres
// cluster with logical decoding. It is for development, the demo and the
// end-to-end tests; nothing in it is meant for production.
//
// It is a module of its own, so that the servers it embeds are no dependency of
// the product. Its packages:
//
//	proc            a child process: own group, log file, dies with its parent
//	temporalserver  the embedded Temporal server and UI
//	s3gateway       the embedded S3 gateway
//	stack           the three servers together, each started, stopped, killed
//	                and started again on its own, and the S3 fault proxy
//	pipeline        the tidemark binary as child processes, and its configuration
//	load            a write load that counts what it has committed
//	lakecheck       the lake's files as DuckDB reads them, against Postgres
//	bench           measures Tidemark against pg_recvlogical on such a stack
//	e2e             the end-to-end tests, with their harness
package main
