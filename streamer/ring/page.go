package ring

import "github.com/tidemark-cdc/tidemark/internal/change"

const (
	// pageChanges entries and a page's header fill an allocation of 16 KiB.
	pageChanges = 185
	// pageBytes bounds the raw bytes that a page refers to, so that a page
	// which is held for the sake of one small change holds little else.
	pageBytes = 256 << 10
	// slabBytes is the size of a slab.
	slabBytes = 256 << 10
	// slabLargest is the largest raw message that shares a slab. What does not
	// fit at a slab's end begins a new one, so this bounds what is lost there.
	slabLargest = slabBytes / 16
)

// page is a run of entries, allocated once. Views read changes below their own
// end while the ring writes above it, so a View must not look at n or bytes.
type page struct {
	// first is the number of the first entry, before the raw bytes of all
	// changes before it. Both are written when the page is made.
	first  uint64
	before int64
	// changes[:n] are written, once each. bytes is the sum of their raw bytes,
	// at most pageBytes unless n is 1.
	changes [pageChanges]change.Change
	n       int32
	bytes   int64
}

// fits says whether a change of raw bytes may still go into the page.
func (p *page) fits(raw int) bool {
	return p.n < pageChanges && p.bytes+int64(raw) <= pageBytes
}

func (p *page) end() uint64 { return p.first + uint64(p.n) }

// full says that no further change goes in, whatever its size.
func (p *page) full() bool { return p.n == pageChanges || p.bytes >= pageBytes }
