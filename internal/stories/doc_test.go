// Package stories holds tests that tell Postgres a story and read it back the
// way a row goes: replication session, Framer, segments that are cut at random,
// both kinds of source, Decoder. What has to come out is what Postgres itself
// said at the time of each change: to_json of the row in a session with the
// pinned settings, and the catalog's word on its replica identity.
//
// Each story is told to both ends of the supported range of versions, is read
// twice (while it happens, and again from the slot when it is over), and its
// segments are decoded in parallel and out of order, half of them after they
// have gone over the data plane.
//
// There is nothing here but tests.
package stories
