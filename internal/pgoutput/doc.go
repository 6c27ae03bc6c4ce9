// Package pgoutput reads the messages of Postgres' pgoutput plugin, protocol
// version 1, in two halves that never run in the same place:
//
//   - Framer is the streamer's half. It says what each message is (Frame) and
//     at which position each change stands, keeps the relation cache, decodes
//     no tuple and allocates nothing per change.
//   - Decoder is the worker's half. It turns the raw message of a change, with
//     the relation version that was in force for it, into the JSON images
//     `before` and `after`.
//
// Sources for the protocol: "Logical Replication Message Formats" in the
// Postgres documentation, src/backend/replication/logical/proto.c and
// src/backend/replication/pgoutput/pgoutput.c. For the JSON:
// src/backend/utils/adt/json.c (datum_to_json, escape_json, JsonEncodeDateTime).
//
// The session settings that the text of values depends on are pinned by package
// replication: client_encoding=UTF8, DateStyle=ISO,YMD, TimeZone=UTC and
// extra_float_digits=3 matter here.
//
// # Positions
//
// A change of a transaction stands at (timeline of the commit LSN, commit LSN
// as Begin announces it, ordinal). Each insert, update, delete and
// transactional logical message takes one ordinal, a truncate one per table,
// whether we keep the change or not.
//
// A non-transactional logical message stands at (timeline, LSN - 1, 0), because
// the LSN it carries is the end of its record and can equal the commit LSN of a
// transaction. It arrives outside of Begin and Commit, belongs to no
// transaction and so has no commit time of its own: it takes that of the change
// before it in the stream (FramerConfig.MessageTime), which is the same however
// often the stream is read. Messages are dropped unless FramerConfig.Messages
// is set.
package pgoutput
