// Package streamer owns a pipeline's ordered path: it reads the slot, keeps the
// ring, cuts the stream into segments, has Temporal carry each of them, and
// moves the slot's ack over the contiguous prefix of finished ones.
//
// A Streamer goes through lives. A life begins with the lake's own record
// (ack.json) once the slot is ours, and lasts through any number of
// connections; it ends when what it knows can no longer be trusted (another
// timeline, a second writer of the record), and the next one starts from the
// record again. Whatever was in flight then is adopted, by the same rules as
// after a crash.
//
// In a life run, each on a goroutine of its own:
//
//	receive   session → ring        (session.go, receive.go)
//	dispatch  ring → Temporal       (dispatch.go, adopt.go), strictly in order
//	await     Temporal → ring       (await.go), one per segment in flight
//	keep      ring → ack.json → slot (keeper.go)
//	guard     is the slot still ours? (guard.go)
//	pause     has a person paused the pipeline? (pause.go)
//
// The ring itself (package ring) is pure; buffer.go puts a lock and wake-ups
// around it. Decisions about recorded segments are pure too (decide.go). The
// package knows Temporal only through the Tracker interface.
package streamer
