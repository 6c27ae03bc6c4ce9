package flight

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
)

// maxIdle bounds the connections that are kept without being used. Streamers
// come back at other addresses; there are rarely more than a few.
const maxIdle = 16

// pool keeps one connection for each address. It has no goroutine: connections
// that are out of use are closed by the next get or release, and until then
// gRPC's own idle timeout has closed their sockets. Safe for concurrent use.
type pool struct {
	idle time.Duration
	dial func(address string) (*grpc.ClientConn, error)

	mu     sync.Mutex
	conns  map[string]*pooled
	closed bool
}

type pooled struct {
	conn  *grpc.ClientConn
	users int
	since time.Time // when users became 0
}

func newPool(idle time.Duration, dial func(string) (*grpc.ClientConn, error)) *pool {
	return &pool{idle: idle, dial: dial, conns: map[string]*pooled{}}
}

// get returns the connection to address, for use until release is called.
// release may be called more than once.
func (p *pool) get(address string) (_ *grpc.ClientConn, release func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, errors.New("this worker's client of the data plane is closed")
	}
	c := p.conns[address]
	if c == nil {
		conn, err := p.dial(address)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		c = &pooled{conn: conn}
		p.conns[address] = c
	}
	c.users++
	p.sweep(time.Now())
	return c.conn, sync.OnceFunc(func() { p.release(c) }), nil
}

func (p *pool) release(c *pooled) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.users--
	c.since = time.Now()
	p.sweep(c.since)
}

// sweep closes what has been idle for too long, and the longest idle ones of
// too many.
func (p *pool) sweep(now time.Time) {
	for {
		var oldest string
		n := 0
		for a, c := range p.conns {
			if c.users > 0 {
				continue
			}
			if n++; n == 1 || c.since.Before(p.conns[oldest].since) {
				oldest = a
			}
		}
		if n == 0 || n <= maxIdle && now.Sub(p.conns[oldest].since) < p.idle {
			return
		}
		// Closing a connection that nobody uses has nothing to report.
		_ = p.conns[oldest].conn.Close()
		delete(p.conns, oldest)
	}
}

func (p *pool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	var errs []error
	for a, c := range p.conns {
		if err := c.conn.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close the connection to the streamer at %s: %w", a, err))
		}
	}
	clear(p.conns)
	return errors.Join(errs...)
}
