// Package replication speaks with Postgres: one replication connection that
// receives a slot's changes and reports how far they are safe (Session), and
// short ordinary connections for everything else (Admin).
//
// # Session
//
//	Open ── Start ──▶ Receive, Receive, Receive ... Close
//	                     NoteEnd, SetAck (from anywhere)
//
// Open pins the settings that shape the text of values (PinnedSettings), so
// that no role or database setting changes what a value looks like, and refuses
// a server that is in recovery or too old. Start asks for the slot's changes
// from the slot's own position, never from one of ours. Receive returns one
// message after another; it belongs to one goroutine and has no deadline.
//
// From Start to Close the session runs the only goroutine that sends status
// updates. What to report and when is decided by Feedback, which is pure. Its
// invariants:
//
//   - no LSN is reported above the greatest commit end or keepalive end that
//     came on this very connection; before one has come, the slot's
//     confirmed_flush_lsn is reported. A server that was restored or failed
//     over would accept an LSN beyond its own WAL, and skip new rows for ever;
//   - what is reported never goes back within a session;
//   - a report goes out when the ack grows, when the server asks, and at least
//     every 10 s or quarter of wal_sender_timeout, whether Receive is called or
//     not: a full ring for an hour does not end the connection.
//
// A fast shutdown of Postgres waits for its receivers to confirm everything.
// When the ack cannot move the session finds out by an ordinary connection
// that the server is shutting down, closes, and Receive returns
// ErrServerShutdown. Nothing is lost: what was not confirmed comes again.
//
// # Errors
//
// The reasons for which a session can end are sentinel errors (ErrSlotInUse,
// ErrSlotMissing, ...), wrapped in texts that say what to do. Transient says
// whether to connect again with backoff or to stop.
//
// # Admin
//
// Every call of Admin opens a connection and closes it: a permanent one would
// block a smart shutdown of Postgres. Inspect reads what there is to know about
// a server, a slot and publications; Check and Warnings, which are pure, say
// what is wrong with it and what to do.
//
// # Sources
//
// The messages and commands are those of "Streaming Replication Protocol" in
// the PostgreSQL documentation (protocol-replication) and of
// src/backend/replication/walsender.c. Supported are versions 15 to 18.
package replication
