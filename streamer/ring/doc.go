// Package ring is the bounded, ordered buffer between Postgres and the lake:
// the changes that are not yet in a finished prefix, the segments that were cut
// from them, the walk over the finished ones and the ack that results.
//
// # Ranges
//
// Changes are numbered from 0 in the order in which they were added. Three
// counters, which only grow, divide the numbers into four ranges:
//
//	0 ........ read ........... cut ........... write ..........
//	   done        dispatched        waiting          free
//
// Add moves write. Propose finds the segment that should be closed now and
// moves nothing; Cut and Extend move cut, once the boundary is confirmed.
// Finish marks a segment in any order, and walks: read moves over the
// contiguous prefix of finished segments. The ack is the greatest marker at or
// below read, so it never covers an unfinished change. A marker is a
// transaction's end or the WAL end of a keepalive.
//
// # Purity
//
// The ring has no clock, goroutine, lock or I/O. Time enters as an argument.
// The streamer owns it and serializes every call; only a View may be read by
// other goroutines meanwhile.
//
// # Memory is never reused
//
// A View stays as it is for as long as somebody holds it. An upload attempt
// that was given up long ago may still be reading: if its bytes were reused it
// would write another segment's rows under this segment's key. So an entry is
// written once, before any View covers it, and never changed, not even zeroed;
// pages and slabs are dropped and left to the garbage collector, never put back
// into a pool.
//
// The price is that a View keeps whole pages and slabs alive: beyond its own
// changes at most a page's worth of neighbours and a slab at either end, about
// 1 MiB in all. A change larger than that has a page and a slab to itself, so it
// is never kept for a neighbour's sake.
package ring
