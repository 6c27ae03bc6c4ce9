// Package change holds the values that everything else in Tidemark speaks of:
// where a change stands in the stream (Position, LSN, Timeline), what it is
// (Change, Operation) and what it was decoded against (Relation, Type).
//
// The package imports nothing but the standard library and does no I/O. Its
// types are plain values: a Change does not own its Raw bytes, see there.
package change
