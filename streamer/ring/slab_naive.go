//go:build tidemark_naive_slab

// This is a bug kept on purpose, in no build that anybody is given: the chaos
// tests build it to show that they see the values that it spoils.

package ring

// slab hands its space out again and again, from its beginning whenever it is
// used up, as if what lay there must have been uploaded by then.
type slab struct{ whole, free []byte }

func (s *slab) copy(raw []byte) []byte {
	if len(raw) > slabLargest {
		return append([]byte(nil), raw...)
	}
	if len(raw) > len(s.free) {
		if s.whole == nil {
			s.whole = make([]byte, slabBytes)
		}
		s.free = s.whole
	}
	out := s.free[:len(raw):len(raw)]
	s.free = s.free[len(raw):]
	copy(out, raw)
	return out
}
