//go:build tidemark_naive_ack

// This is a bug kept on purpose, in no build that anybody is given: the
// end-to-end tests build it to show that they see the rows that it loses.

package ring

// settle acknowledges the end of the latest finished segment, whatever is still
// unfinished before it.
func (r *Ring) settle(s *dispatched) (ackMoved bool) {
	if s.marked && s.ack.LSN > r.ack.LSN {
		ackMoved = r.move(s.ack)
	}
	// The walk goes on as ever, so that nothing but the ack is naive.
	naive := r.ack
	if r.walk() && r.ack.LSN < naive.LSN {
		r.move(naive)
	}
	return ackMoved || r.ack != naive
}
