package stack

import (
	"fmt"
	"io"
	"net"
	"sync"
)

// Relay passes TCP connections on to a target, as a network between two
// processes does, and can stop what comes back: the seam at which a transfer is
// half done. Its methods are safe for concurrent use.
type Relay struct {
	listener net.Listener
	target   string
	served   sync.WaitGroup

	mu      sync.Mutex
	conns   map[net.Conn]struct{} // nil when closed
	stalled chan struct{}         // closed by Resume; nil while nothing is held
	held    chan struct{}         // closed when something is held
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
		to, err := net.Dial("tcp", r.target)
		if err != nil || !r.keep(c) || !r.keep(to) {
			c.Close()
			if to != nil {
				to.Close()
			}
			continue
		}
		end := func() { c.Close(); to.Close(); r.forget(c, to) }
		r.served.Go(func() { defer end(); _, _ = io.Copy(to, c) })
		r.served.Go(func() { defer end(); _, _ = io.Copy(c, heldBack{to, r}) })
	}
}

// keep has Close end c; false when it has been called.
func (r *Relay) keep(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conns == nil {
		return false
	}
	r.conns[c] = struct{}{}
	return true
}

func (r *Relay) forget(conns ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		delete(r.conns, c)
	}
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
