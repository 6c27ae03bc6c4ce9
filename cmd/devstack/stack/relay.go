package stack

import (
	"fmt"
	"io"
	"net"
	"sync"
)

// Relay passes TCP connections on to a target, as a network between two
// processes does. It can stop what comes back, the seam at which a transfer is
// half done, and reset connections. Its methods are safe for concurrent use.
type Relay struct {
	listener net.Listener
	target   string
	served   sync.WaitGroup

	mu      sync.Mutex
	conns   map[net.Conn]struct{} // nil when closed
	refuses bool
	stalled chan struct{} // closed by Resume; nil while nothing is held
	held    chan struct{} // closed when something is held
}

// NewRelay starts a relay on a free loopback port before target, a host:port
// that need not be in use yet.
func NewRelay(target string) (*Relay, error) {
	port, err := FreePorts(1)
	if err != nil {
		return nil, fmt.Errorf("start a relay: %w", err)
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port[0]))
	if err != nil {
		return nil, fmt.Errorf("start a relay: %w", err)
	}
	r := &Relay{listener: l, target: target, conns: map[net.Conn]struct{}{}}
	r.served.Go(r.accept)
	return r, nil
}

// Address is where the relay listens.
func (r *Relay) Address() string { return r.listener.Addr().String() }

// Stall holds back everything that the target sends from now on, until Resume.
// The channel is closed when there is something to hold.
func (r *Relay) Stall() (held <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stalled == nil {
		r.stalled, r.held = make(chan struct{}), make(chan struct{})
	}
	return r.held
}

// Resume ends a Stall: what was held goes on.
func (r *Relay) Resume() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stalled != nil {
		close(r.stalled)
		r.stalled = nil
	}
}

// Cut resets every connection that is open now.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		resetConn(c)
	}
}

// Refuse resets what is open, and what comes from now on, until it is taken back
// with false.
func (r *Relay) Refuse(on bool) {
	r.mu.Lock()
	r.refuses = on
	r.mu.Unlock()
	if on {
		r.Cut()
	}
}

// Close ends every connection and stops listening.
func (r *Relay) Close() {
	r.Resume()
	r.listener.Close()
	r.mu.Lock()
	conns := r.conns
	r.conns = nil
	r.mu.Unlock()
	for c := range conns {
		c.Close()
	}
	r.served.Wait()
}

func (r *Relay) accept() {
	for {
		c, err := r.listener.Accept()
		if err != nil {
			return // Close was called
		}
		r.served.Go(func() { r.pass(c) })
	}
}

// pass carries one connection until either side, a cut or Close ends it.
func (r *Relay) pass(client net.Conn) {
	if !r.keep(client) {
		resetConn(client)
		return
	}
	defer r.forget(client)
	server, err := net.Dial("tcp", r.target)
	if err != nil {
		resetConn(client)
		return
	}
	if !r.keep(server) {
		resetConn(client)
		resetConn(server)
		return
	}
	defer r.forget(server)
	end := func() { client.Close(); server.Close() }
	var ways sync.WaitGroup
	ways.Go(func() { defer end(); _, _ = io.Copy(server, client) })
	ways.Go(func() { defer end(); _, _ = io.Copy(client, heldBack{server, r}) })
	ways.Wait()
}

// keep has Cut, Refuse and Close end c; false when it must not be there at all.
func (r *Relay) keep(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conns == nil || r.refuses {
		return false
	}
	r.conns[c] = struct{}{}
	return true
}

func (r *Relay) forget(c net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
}

// resetConn closes a connection as a network that breaks does.
func resetConn(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// heldBack reads from the target as fast as the relay lets pass.
type heldBack struct {
	io.Reader
	relay *Relay
}

func (h heldBack) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	h.relay.mu.Lock()
	stalled, held := h.relay.stalled, h.relay.held
	if stalled != nil && n > 0 {
		select {
		case <-held:
		default:
			close(held)
		}
	}
	h.relay.mu.Unlock()
	if stalled != nil && n > 0 {
		<-stalled
	}
	return n, err
}
