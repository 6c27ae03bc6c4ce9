package flight

import "fmt"

// boundedAllocator keeps arrow from allocating what a broken length asks for.
// It can only panic, and arrow's reader turns panics into errors. In a stream
// that is as it should be nothing is compressed and so nothing allocated here.
type boundedAllocator struct{ limit int }

// Allocate implements memory.Allocator.
func (a boundedAllocator) Allocate(size int) []byte {
	if size < 0 || size > a.limit {
		panic(fmt.Sprintf("a buffer of %d bytes, at most %d", size, a.limit))
	}
	return make([]byte, size)
}

// Reallocate implements memory.Allocator.
func (a boundedAllocator) Reallocate(size int, b []byte) []byte {
	if 0 <= size && size <= cap(b) {
		return b[:size]
	}
	n := a.Allocate(size)
	copy(n, b)
	return n
}

// Free implements memory.Allocator.
func (a boundedAllocator) Free([]byte) {}
