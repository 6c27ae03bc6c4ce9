// Package lake is where rows come to rest: a bucket and a prefix (or a folder)
// that holds one Parquet object per segment, and the lake's own record of what
// was written.
//
//	YYYY/MM/DD/<first>_<last>.zstd.parquet              a segment, by UTC commit day
//	_quarantine/YYYY/MM/DD/<first>_<last>.zstd.parquet  a segment's raw messages
//	_tidemark/pipeline.json                             whose lake it is (Identity)
//	_tidemark/ack.json                                  how far it is complete (AckRecord)
//	_tidemark/gaps/<follows>_<last>.json                a recorded gap (Gap)
//
// All keys of this package are relative to the lake's prefix.
//
// What holds, at any moment and whatever dies:
//
//   - An object is whole or absent, and never changes once it is there. It is
//     written under the condition that its key is free, so whoever comes second
//     finds it instead of replacing it.
//   - A segment has one key, made of its day and its boundary, so every attempt
//     to upload it meets the others at the same place. The same digest there is
//     success, another one is ErrConflict.
//   - Every object says in its Parquet footer which pipeline it belongs to and
//     which position it follows (Metadata), and the footer is the only place
//     where that stands. So the objects form a chain from the slot's starting
//     LSN to the ack, and Verify can show from the lake alone that nothing is
//     missing and nothing is there twice.
//   - _tidemark/ack.json is replaced only by whoever has read its present
//     version, so a second writer is found out.
//
// A Lake does this on top of a Store: S3, a folder, or memory. Stores keep one
// contract, written at the Store interface, that package laketest checks.
//
// The streamer reads and writes the records and looks for objects, the
// activities put segments, the verify command verifies. Nothing here retries
// for long: a failure says what sort it is (Class) and whoever called decides.
package lake
