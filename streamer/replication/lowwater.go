package replication

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// A walsender hands each change to the socket by itself. While the reader is as
// quick as that, each wakes it, and the waking costs both of them more than the
// change does. So while very much is coming the kernel is told to wake the reader
// for many bytes only (SO_RCVLOWAT of socket(7)), and the reader looks by itself
// when they take long to come. docs/benchmarks.md has what that saves.
const (
	// lowWater is how many bytes wake the reader meanwhile.
	lowWater = 32 << 10
	// lowWait is for how long it sleeps with fewer than that.
	lowWait = 2 * time.Millisecond
	// floodReads reads within floodTime are very much: some 13,000 a second, for
	// longer than a burst of a few hundred changes lasts.
	floodReads = 256
	floodTime  = 20 * time.Millisecond
	// floodEnds is how few bytes within lowWait are not much any more.
	floodEnds = 1 << 10
)

// calm is a connection whose reader is not woken for each message of a flood. A
// message may lie in it for lowWait then. Reads belong to one goroutine at a time;
// the rest is as of net.Conn.
type calm struct {
	net.Conn
	raw syscall.RawConn

	// The reader's own: whether the low-water mark is set, and when the last
	// floodReads reads began to be counted.
	flooded bool
	reads   int
	since   time.Time

	mu sync.Mutex
	// deadline is the one that was set from outside, guarded by mu.
	deadline time.Time
}

// calmly makes a dial function's TCP connections calm.
func calmly(dial func(ctx context.Context, network, address string) (net.Conn, error)) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		tcp, ok := conn.(*net.TCPConn)
		if err != nil || !ok {
			return conn, err
		}
		raw, err := tcp.SyscallConn()
		if err != nil {
			return nil, errors.Join(err, tcp.Close())
		}
		return &calm{Conn: tcp, raw: raw}, nil
	}
}

// SetDeadline implements net.Conn.
func (c *calm) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.Conn.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (c *calm) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	return c.Conn.SetReadDeadline(t)
}

// Read implements net.Conn.
func (c *calm) Read(p []byte) (int, error) {
	if !c.flooded {
		n, err := c.Conn.Read(p)
		c.count()
		return n, err
	}
	if err := c.wakeBy(time.Now().Add(lowWait)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || c.late() {
		return n, err
	}
	// Fewer bytes than the mark, or none.
	if err := c.wakeBy(time.Time{}); err != nil {
		return 0, err
	}
	n, err = c.there(p)
	if err == nil && n < floodEnds {
		c.flooded = false
		err = c.wakeAt(1)
	}
	if n > 0 || err != nil {
		return n, err
	}
	return c.Conn.Read(p)
}

// count notices a flood.
func (c *calm) count() {
	if c.reads++; c.reads < floodReads {
		return
	}
	now := time.Now()
	c.flooded = now.Sub(c.since) < floodTime && c.wakeAt(lowWater) == nil
	c.reads, c.since = 0, now
}

// wakeBy sets the time by which a Read returns, at the latest the deadline that
// was set from outside; zero is that deadline.
func (c *calm) wakeBy(by time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if by.IsZero() || !c.deadline.IsZero() && c.deadline.Before(by) {
		by = c.deadline
	}
	return c.Conn.SetReadDeadline(by)
}

// late says that the deadline from outside has passed.
func (c *calm) late() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.deadline.IsZero() && !time.Now().Before(c.deadline)
}

// wakeAt sets the number of bytes that wake the reader.
func (c *calm) wakeAt(bytes int) error {
	var err error
	if failed := c.raw.Control(func(fd uintptr) { err = setLowWater(fd, bytes) }); failed != nil {
		return failed
	}
	return err
}

// there reads what is there, and does not wait: 0 is nothing, or the end, which
// the next Read finds.
func (c *calm) there(p []byte) (n int, err error) {
	failed := c.raw.Control(func(fd uintptr) { n, err = readNow(fd, p) })
	switch {
	case failed != nil:
		return 0, failed
	case errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR):
		return 0, nil
	case err != nil:
		return 0, os.NewSyscallError("read", err)
	}
	return n, nil
}
