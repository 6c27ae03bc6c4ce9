//go:build !tidemark_naive_ack

package ring

// settle moves the read counter, and the ack with it, after a segment has
// finished: over the contiguous prefix of finished segments and no further.
// settle_naive.go is what happens otherwise.
func (r *Ring) settle(*dispatched) (ackMoved bool) { return r.walk() }
