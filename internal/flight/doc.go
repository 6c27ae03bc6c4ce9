// Package flight is the data plane: how the changes of a segment get from the
// streamer to a worker in another process. Server serves a segment.Source over
// Arrow Flight; Client turns a segment.Location into a segment.Source that
// fetches from there. The streamer's process runs one Server, a worker's
// process has one Client; neither decodes a tuple.
//
// # Protocol, version 1
//
// One DoGet per fetch. The ticket is a JSON object: version, pipeline, first,
// last and digest of the segment.
//
// The answer is a stream of Arrow record batches, one row per change, with the
// columns of wireSchema; the schema's metadata names the version. A batch has
// at most maxBatchRows rows and about maxBatchBytes bytes. A raw message that
// is longer than a batch goes in parts, so that neither end ever holds a
// message of the transport much larger than that: length says how long the
// whole is, and as long as it is not complete, the first row of the next batch
// repeats the change's other columns with the next part. Only the last row of
// a batch can be incomplete.
//
// Each batch can carry a JSON object in its app_metadata (batchMeta):
//
//   - relations: the relation versions that occur in it for the first time in
//     the stream, with their type facts. They are numbered through the stream
//     from 0 in this order, and the relation column refers to these numbers.
//   - end: only on the last batch, which has no rows. It says how many rows and
//     raw bytes came before. A stream that stops without it was cut, and is an
//     error, never a shorter segment.
//
// # Errors
//
// Why a segment cannot be had travels as a gRPC status with an ErrorInfo detail
// of domain "tidemark": NOT_YET (Unavailable), GONE and UNKNOWN (both NotFound)
// come out as the segment package's errors on the other side. The digest is not
// checked here: whoever fetches a segment checks it.
//
// # Who may connect
//
// On a loopback address anyone on the machine may. On any other, Server
// refuses to start without a certificate, a key and a token, unless it is told
// to be insecure. Certificates, authorities and tokens are read again when
// their files change; connections that stand are not cut.
package flight
