// Package rowfile writes changes to Parquet: Writer the rows of a segment's
// object, RawWriter the raw messages of a quarantined segment, which ReadRaw
// reads back. Activities call it; it knows nothing of the lake, and writes whatever metadata it is given.
//
// # Columns of an object
//
// One row per change, in stream order.
//
//	table        string, null for a logical message: schema-qualified and
//	             quoted as Postgres prints it
//	operation    string: insert, update, delete, truncate or message
//	timestamp    timestamp: when the streamer read the change
//	lsn          int64: the change's own LSN
//	before       string, null where there is no old image: a JSON object
//	after        string, null where there is no new image: a JSON object
//	commit_time  timestamp: the transaction's
//	commit_lsn   int64: where the transaction's commit record begins
//	ordinal      int64: the change's place in its transaction, from 0
//	xid          int64: the transaction's ID, 0 for a non-transactional message
//	unchanged    list of string, never null: columns absent from after because
//	             their TOASTed value was neither sent nor in an image before
//	read_back    list of string, never null: columns whose TOASTed value was
//	             not sent and was read back from the database
//
// Timestamps are INT64 microseconds since 1970, adjusted to UTC.
//
// LSNs are plain signed integers, not the 16/B374D848 that Postgres prints:
// readers sort by (commit_lsn, ordinal) to get commit order, which the printed
// form does not sort in, and every reader has signed 64-bit integers while many
// lack unsigned ones. No server reaches the sign bit: that is 8 EiB of WAL. The
// printed form is printf('%X/%X', lsn >> 32, lsn & 4294967295).
//
// The images are annotated as UTF-8 strings and not with Parquet's JSON type,
// which readers without it show as bytes, and from which readers that have it
// gain nothing that a cast does not give.
//
// # Columns of a quarantine file
//
// One row per change, everything that is known of it, nothing decoded:
//
//	position     string: TTTTTTTT-LLLLLLLLLLLLLLLL-NNNNNNNNNN
//	lsn          int64, as above
//	xid          int64
//	commit_time  timestamp
//	timestamp    timestamp, as above
//	operation    string
//	table        string, null for a logical message
//	joined       boolean: the next row came in the same message
//	message      bytes: the whole pgoutput message
//	relation     string, null for a logical message: the relation version and
//	             its type facts, as JSON (change.Relation)
//	announcement int64: numbers the relation versions of the file from 1, also
//	             two that say the same; 0 for a logical message
//
// # Form
//
// ZSTD, one row group unless the rows take more than 128 MiB uncompressed, no
// page index. Equal changes and metadata give equal bytes, as long as the
// libraries are the same.
package rowfile
