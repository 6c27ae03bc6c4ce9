package chaos

import (
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
)

// proxy passes TCP connections on to a target, and can end them all or refuse
// new ones. Its methods are safe for concurrent use.
type proxy struct {
	listener net.Listener
	target   string
	served   sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	refuses bool
	conns   map[net.Conn]struct{}
}

// newProxy listens on a free loopback port before target, a host:port.
func newProxy(target string) (*proxy, error) {
	port, err := stack.FreePorts(1)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port[0]))
	if err != nil {
		return nil, fmt.Errorf("listen before %s: %w", target, err)
	}
	p := &proxy{listener: l, target: target, conns: map[net.Conn]struct{}{}}
	p.served.Go(p.accept)
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.served.Go(func() { p.pass(c) })
	}
}

// pass carries one connection until either side, or a cut, ends it.
func (p *proxy) pass(client net.Conn) {
	defer end(client)
	if !p.enter(client) {
		return
	}
	defer p.leave(client)
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer end(server)
	if !p.enter(server) {
		return
	}
	defer p.leave(server)
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			done <- struct{}{}
		}()
	}
	<-done
	// The other direction ends with its connection.
	end(client)
	end(server)
	<-done
}

func (p *proxy) enter(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.refuses {
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *proxy) leave(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// cut resets every connection that is open now.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		end(c)
	}
}

// refuse resets what is open, and what comes from now on, until it is taken
// back with false.
func (p *proxy) refuse(on bool) {
	p.mu.Lock()
	p.refuses = on
	p.mu.Unlock()
	if on {
		p.cut()
	}
}

func (p *proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.listener.Close()
	p.cut()
	p.served.Wait()
}

// end closes a connection by a reset, as a network that breaks does.
func end(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}
