package ring

// deque is a queue in a circular buffer whose length is a power of two. It
// shrinks when three quarters are empty, so that a peak is not paid for ever,
// and clears what it gives up.
type deque[T any] struct {
	buf  []T
	head int
	n    int
}

const dequeMin = 16

func (d *deque[T]) len() int { return d.n }

// at returns the i-th element from the front; the pointer is good until the
// next push or pop. i must be in [0, len).
func (d *deque[T]) at(i int) *T { return &d.buf[(d.head+i)&(len(d.buf)-1)] }

func (d *deque[T]) front() *T { return d.at(0) }
func (d *deque[T]) back() *T  { return d.at(d.n - 1) }

func (d *deque[T]) push(v T) {
	if d.n == len(d.buf) {
		d.resize(max(dequeMin, 2*d.n))
	}
	d.n++
	*d.back() = v
}

func (d *deque[T]) pop() T {
	var none T
	p := d.front()
	v := *p
	*p = none
	d.head = (d.head + 1) & (len(d.buf) - 1)
	d.n--
	if len(d.buf) > dequeMin && d.n <= len(d.buf)/4 {
		d.resize(len(d.buf) / 2)
	}
	return v
}

func (d *deque[T]) resize(size int) {
	buf := make([]T, size)
	for i := range d.n {
		buf[i] = *d.at(i)
	}
	d.buf, d.head = buf, 0
}
