// Package segment holds what streamer, Temporal and workers say to each other
// about a segment: its reference (Ref), its Digest, its Record in Temporal, and
// the contract by which its changes are fetched (Source).
//
// A segment is a contiguous run of changes of one UTC commit day and one
// timeline: the unit of dispatch, upload and retry. One segment is one object
// of the lake. A Ref is small and of bounded size; it carries no row and no
// secret.
//
// The streamer makes Refs and serves Sources, package tracker keeps Records in
// Temporal, package activities fetches and uploads.
package segment
