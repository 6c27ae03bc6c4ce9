// Package activities does the work of a segment on a worker: it fetches the
// segment's changes from the streamer, checks that they are the ones that were
// dispatched, encodes them and stores the object.
//
// An activity may run more than once, on several workers at once, and after its
// result was lost. It stays harmless because the object's key is a function of
// the segment's reference and the store refuses a second object under one key:
// whoever comes second finds the same digest there, and that is success.
//
// This is the only package that turns errors into Temporal's: each has a type
// name (see Class) and is permanent only if no later attempt can succeed. Error
// texts name pipeline, segment and what to do; they carry no row and no secret.
package activities
