package ring

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// numbered makes the change numbered n, whose bytes say so.
func numbered(n, size int) change.Change {
	raw := bytes.Repeat(binary.BigEndian.AppendUint64(nil, uint64(n)), size/8+1)
	return change.Change{
		Position: change.Position{Timeline: 1, LSN: change.LSN(100 + 10*n)},
		XID:      uint32(n),
		Raw:      raw[:size],
	}
}

// checkNumbered says what is wrong with a View of changes made by numbered,
// whose sizes are size(n).
func checkNumbered(v View, size func(int) int) error {
	n := int(v.From)
	for chunk := range v.Chunks() {
		for _, c := range chunk {
			if want := numbered(n, size(n)); c.Position != want.Position || c.XID != want.XID || !bytes.Equal(c.Raw, want.Raw) {
				return fmt.Errorf("view [%d, %d): change %d is not what was added: position %s, xid %d", v.From, v.To, n, c.Position, c.XID)
			}
			n++
		}
	}
	if n != int(v.To) {
		return fmt.Errorf("view [%d, %d) ends at %d", v.From, v.To, n)
	}
	return nil
}

// TestViewStaysAsItIs has uploads that go on reading their segments while the
// ring takes in the next ones, long after their segments were finished and
// walked over. With -race it also shows that they never meet the writer.
func TestViewStaysAsItIs(t *testing.T) {
	sizes := []int{8, 100, 3000, 20_000, 0, 64, 8, 300_000, 17}
	size := func(n int) int { return sizes[n%len(sizes)] }
	r := New(Config{SegmentRows: 130, MaxBytes: 8 << 20}, Start{})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	stopped := sync.OnceFunc(func() { close(stop) })
	defer stopped()

	const changes, readers = 4000, 8
	var views []View
	for n := range changes {
		c := numbered(n, size(n))
		if !r.Admit(len(c.Raw)) {
			t.Fatalf("change %d is not admitted: %+v", n, r.Stats())
		}
		if _, err := r.Add(&c); err != nil {
			t.Fatal(err)
		}
		clear(c.Raw)
		r.Mark(c.Position.LSN + 5)
		v, ok := r.Propose(0, n%37 == 0)
		if !ok {
			continue
		}
		id, err := r.Cut(v)
		if err != nil {
			t.Fatal(err)
		}
		views = append(views, v)
		if len(views) <= readers {
			wg.Go(func() {
				for {
					if err := checkNumbered(v, size); err != nil {
						t.Error(err)
						return
					}
					select {
					case <-stop:
						return
					default:
						runtime.Gosched()
					}
				}
			})
		}
		r.Finish(id)
	}
	stopped()
	wg.Wait()
	for _, v := range views {
		if err := checkNumbered(v, size); err != nil {
			t.Error(err)
		}
	}
}

// TestStaleProposalStaysValid: a proposal that is confirmed late is what it was
// when it was made, though more has come since.
func TestStaleProposalStaysValid(t *testing.T) {
	size := func(int) int { return 10 }
	r := New(Config{}, Start{})
	add := func(n int) {
		c := numbered(n, 10)
		if _, err := r.Add(&c); err != nil {
			t.Fatal(err)
		}
		r.Mark(c.Position.LSN + 5)
	}
	for n := range 10 {
		add(n)
	}
	early, _ := r.Propose(0, true)
	for n := 10; n < 500; n++ {
		add(n)
	}
	late, _ := r.Propose(0, true)
	if early.Rows != 10 || late.Rows != 500 {
		t.Fatalf("%d and %d rows, want 10 and 500", early.Rows, late.Rows)
	}
	for _, v := range []View{early, late} {
		if err := checkNumbered(v, size); err != nil {
			t.Error(err)
		}
	}
	if _, err := r.Cut(early); err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]View{"does not begin at the cut": late, "is cut already": early, "is empty": {From: 10, To: 10}, "is of another ring": {From: 10, To: 501}} {
		if _, err := r.Cut(v); err == nil {
			t.Errorf("a view that %s was cut", name)
		}
	}
}

// TestFinishedMemoryIsGivenBack: nothing that is finished is held by the ring,
// and a View does not hold what came after it.
func TestFinishedMemoryIsGivenBack(t *testing.T) {
	r := New(Config{SegmentRows: 1000}, Start{})
	var pages []weak.Pointer[page]
	var held View
	for n := range 20_000 {
		c := numbered(n, 200)
		if _, err := r.Add(&c); err != nil {
			t.Fatal(err)
		}
		r.Mark(c.Position.LSN + 5)
		if p := *r.pages.back(); len(pages) == 0 || pages[len(pages)-1].Value() != p {
			pages = append(pages, weak.Make(p))
		}
		v, ok := r.Propose(0, false)
		if !ok {
			continue
		}
		id, err := r.Cut(v)
		if err != nil {
			t.Fatal(err)
		}
		if v.From == 2000 {
			held = v
		}
		r.Finish(id)
	}
	alive := func() (n int) {
		for _, p := range pages {
			if p.Value() != nil {
				n++
			}
		}
		return n
	}
	// The pages of the View, and the ring's last one.
	want := len(held.pages) + 1
	for deadline := time.Now().Add(time.Minute); alive() != want && time.Now().Before(deadline); {
		runtime.GC()
	}
	if got := alive(); got != want {
		t.Errorf("%d of %d pages are alive, want %d", got, len(pages), want)
	}
	runtime.KeepAlive(held)
	runtime.KeepAlive(r)
}

// TestLargeChangeDoesNotStay: a ring that has gone quiet holds no large change
// that is finished.
func TestLargeChangeDoesNotStay(t *testing.T) {
	r := New(Config{}, Start{})
	for n, size := range []int{10, pageBytes + 1} {
		c := numbered(n, size)
		if _, err := r.Add(&c); err != nil {
			t.Fatal(err)
		}
		r.Mark(c.Position.LSN + 5)
	}
	v, _ := r.Propose(0, true)
	if len(v.pages) != 2 {
		t.Errorf("a change larger than a page shares one: %d pages", len(v.pages))
	}
	if _, err := r.Cut(v); err != nil {
		t.Fatal(err)
	}
	if n := r.pages.len(); n != 0 {
		t.Errorf("%d pages are held though nothing waits", n)
	}
}

// TestTruncateSharesOneCopy: a message that names a thousand tables lies in the
// ring once.
func TestTruncateSharesOneCopy(t *testing.T) {
	r := New(Config{}, Start{})
	raw := bytes.Repeat([]byte{'T'}, slabLargest)
	for n := range 1000 {
		c := change.Change{
			Position: change.Position{Timeline: 1, LSN: 100, Ordinal: uint64(n)},
			Raw:      raw, Operation: change.Truncate, Joined: n < 999,
		}
		if _, err := r.Add(&c); err != nil {
			t.Fatal(err)
		}
	}
	r.Mark(105)
	v, _ := r.Propose(0, true)
	if v.Rows != 1000 || v.Bytes != 1000*slabLargest {
		t.Errorf("%d rows, %d bytes", v.Rows, v.Bytes)
	}
	var first *byte
	for chunk := range v.Chunks() {
		for i := range chunk {
			if first == nil {
				first = &chunk[i].Raw[0]
			}
			if &chunk[i].Raw[0] != first {
				t.Fatalf("change %s has a copy of its own", chunk[i].Position)
			}
		}
	}
}

// TestChangesCostNoAllocation: memory comes a page and a slab at a time.
func TestChangesCostNoAllocation(t *testing.T) {
	r := New(Config{}, Start{})
	c := numbered(0, 100)
	n := 0
	cycle := func() {
		for range 10_000 {
			c.Position.LSN = change.LSN(100 + 10*n)
			n++
			if !r.Admit(len(c.Raw)) {
				t.Fatal("not admitted")
			}
			if _, err := r.Add(&c); err != nil {
				t.Fatal(err)
			}
			r.Mark(c.Position.LSN + 5)
			v, ok := r.Propose(0, false)
			r.NextDue(0)
			if !ok {
				continue
			}
			id, err := r.Cut(v)
			if err != nil {
				t.Fatal(err)
			}
			r.Finish(id)
		}
	}
	// 55 pages, 4 slabs, a page list, and a few for queues that grow and shrink.
	if got := testing.AllocsPerRun(20, cycle); got > 90 {
		t.Errorf("%v allocations for 10,000 changes", got)
	}
}

func TestDequeKeepsOrderAndShrinks(t *testing.T) {
	var d deque[*int]
	next, first := 0, 0
	push := func(n int) {
		for range n {
			v := next
			d.push(&v)
			next++
		}
	}
	pop := func(n int) {
		for range n {
			if got := *d.pop(); got != first {
				t.Fatalf("popped %d, want %d", got, first)
			}
			first++
		}
	}
	push(10)
	pop(7)
	push(1000)
	for i := range d.len() {
		if got := **d.at(i); got != first+i {
			t.Fatalf("at(%d) is %d, want %d", i, got, first+i)
		}
	}
	pop(1000)
	if d.len() != 3 || len(d.buf) > 2*dequeMin {
		t.Errorf("%d elements in room for %d", d.len(), len(d.buf))
	}
	used := 0
	for _, p := range d.buf {
		if p != nil {
			used++
		}
	}
	if used != 3 {
		t.Errorf("%d elements are still referred to, want 3", used)
	}
}

// BenchmarkChange is the whole way of a change through the ring.
func BenchmarkChange(b *testing.B) {
	r := New(Config{}, Start{})
	c := numbered(0, 100)
	b.SetBytes(100)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		c.Position.LSN = change.LSN(100 + 10*n)
		n++
		r.Admit(len(c.Raw))
		if _, err := r.Add(&c); err != nil {
			b.Fatal(err)
		}
		r.Mark(c.Position.LSN + 5)
		if v, ok := r.Propose(0, false); ok {
			id, err := r.Cut(v)
			if err != nil {
				b.Fatal(err)
			}
			r.Finish(id)
		}
	}
}
