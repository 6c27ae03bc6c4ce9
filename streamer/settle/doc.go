// Package settle settles what a streamer stops at because only a person may
// decide it: a slot that is gone, was invalidated or stands ahead of what the
// lake has on record; rows in the lake that a failover has cost the database;
// and a server that pg_upgrade has put in another's place.
//
// Look finds out which of these it is and changes nothing. Do writes it down, so
// that nothing pretends to be continuous and the streamer can go on: changes that
// are missing become recorded gaps, an abandoned branch of history becomes a
// recorded divergence, a successor becomes part of the lake's identity. Nothing
// is ever deleted.
//
// Do can die after each of its steps. They are in an order in which a streamer
// that is started in between stops with the sentence that leads back here, and
// the next Look finds what is left to do:
//
//  1. the succession: the new server's slot, if it has one, stands ahead;
//  2. the slot: a new one stands ahead of what the lake has on record;
//  3. segments that can never be finished are given up, and their attempts waited
//     for; what has been stored by then is a link of the chain like any other;
//  4. divergences;
//  5. gaps, one for each stretch that no object covers;
//  6. ack.json, by a conditional write: from here on the streamer goes on.
//
// Where no slot is ahead, ack.json comes first, going back to the last row that
// has survived: a streamer finds the objects beyond it, whose rows the database
// does not have, until the divergence is recorded. Segments are given up last: a
// streamer that meets one of an abandoned branch stops, and one that meets none
// may go on.
//
// No streamer may have the slot meanwhile; Look and Do refuse it.
package settle
