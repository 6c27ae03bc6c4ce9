// Package pgtest runs private Postgres clusters for tests and for the
// development stack. It is never imported by the product.
//
// A Server is one cluster in a folder of its own: made by initdb, or copied
// from a stopped one, with wal_level=logical, listening on 127.0.0.1 and on no
// socket. The postmaster is a direct child of the calling process, which
// therefore knows its process ID and always reaps it. Where the system allows
// it (Linux), a postmaster dies with the process that started it.
//
// Postgres refuses to run as root, so under root the servers run as the user
// postgres (or nobody), and their folders belong to that user.
//
//	srv, err := pgtest.Start(ctx, pgtest.Options{Version: 15})
//	...
//	defer srv.Close()
//
// A server costs two to three seconds to make; share one per package in
// TestMain where possible. In a single test, New ties one to the test.
//
// Only the standard library is used. Which Postgres programs are run is told
// at Find.
package pgtest
