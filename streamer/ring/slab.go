//go:build !tidemark_naive_slab

package ring

// slab is the piece of memory that raw bytes are copied into. Its space is
// handed out once; slab_naive.go is what happens otherwise.
type slab struct{ free []byte }

// copy returns a copy of raw that nothing will ever write to.
func (s *slab) copy(raw []byte) []byte {
	if len(raw) > slabLargest {
		return append([]byte(nil), raw...)
	}
	if len(raw) > len(s.free) {
		s.free = make([]byte, slabBytes)
	}
	out := s.free[:len(raw):len(raw)]
	s.free = s.free[len(raw):]
	copy(out, raw)
	return out
}
