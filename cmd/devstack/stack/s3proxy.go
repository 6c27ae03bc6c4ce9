package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

// FaultProxy stands between S3 clients and the gateway and does to requests
// what its faults say. Without a fault it passes everything on: bodies as
// streams, the Host header as the client signed it (so clients address buckets
// by path). A gateway that cannot be reached looks to the client like a
// connection that was reset.
type FaultProxy struct {
	listener net.Listener
	server   *http.Server
	served   chan struct{}
	pass     *httputil.ReverseProxy

	mu     sync.Mutex
	faults []*Fault
	seen   []Request
}

// Request is what the proxy remembers of a request that has come in.
type Request struct {
	Method string
	// Path is /bucket/key as the client sent it, decoded.
	Path string
	// At is when it came in.
	At time.Time
}

// maxSeen bounds how many requests the proxy remembers.
const maxSeen = 100_000

// NewFaultProxy starts a proxy on a free loopback port before the gateway at
// host:port.
func NewFaultProxy(gateway string) (*FaultProxy, error) {
	port, err := FreePorts(1)
	if err != nil {
		return nil, fmt.Errorf("start the S3 fault proxy: %w", err)
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port[0]))
	if err != nil {
		return nil, fmt.Errorf("start the S3 fault proxy: %w", err)
	}
	target := &url.URL{Scheme: "http", Host: gateway}
	p := &FaultProxy{listener: l, served: make(chan struct{})}
	p.pass = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // it is part of what was signed
		},
		Transport: &http.Transport{
			MaxIdleConnsPerHost:   64,
			DisableCompression:    true,
			ExpectContinueTimeout: time.Second,
		},
		FlushInterval: -1,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { reset(w) },
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	p.server = &http.Server{Handler: p, ErrorLog: log.New(io.Discard, "", 0)}
	go func() {
		defer close(p.served)
		_ = p.server.Serve(l) // ends with ErrServerClosed
	}()
	return p, nil
}

// Endpoint is the proxy's URL.
func (p *FaultProxy) Endpoint() string { return "http://" + p.listener.Addr().String() }

// Close removes all faults, resets all connections and stops listening.
func (p *FaultProxy) Close() error {
	p.Clear()
	err := p.server.Close()
	<-p.served
	p.pass.Transport.(*http.Transport).CloseIdleConnections()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("stop the S3 fault proxy: %w", err)
	}
	return nil
}

// Requests are those that came in and match, in order.
func (p *FaultProxy) Requests(match Match) []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Request
	for _, r := range p.seen {
		if match(r) {
			out = append(out, r)
		}
	}
	return out
}

// ServeHTTP implements http.Handler.
func (p *FaultProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req := Request{Method: r.Method, Path: r.URL.Path, At: time.Now()}
	fault := p.take(req)
	if fault == nil {
		p.pass.ServeHTTP(w, r)
		return
	}
	defer fault.leave()
	fault.do(p.pass, w, r)
}

// take notes the request and counts it against the first fault that it meets.
func (p *FaultProxy) take(req Request) *Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.seen) < maxSeen {
		p.seen = append(p.seen, req)
	}
	for _, f := range p.faults {
		if f.match(req) && f.enter() {
			return f
		}
	}
	return nil
}

func (p *FaultProxy) add(f *Fault) *Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	f.proxy = p
	f.gone = make(chan struct{})
	f.changed = make(chan struct{})
	p.faults = append(p.faults, f)
	return f
}

// Clear removes all faults; requests that they hold go on.
func (p *FaultProxy) Clear() {
	p.mu.Lock()
	faults := p.faults
	p.faults = nil
	p.mu.Unlock()
	for _, f := range faults {
		f.Remove()
	}
}

// reset closes the client's connection without an answer.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	resetConn(conn)
}

// nowhere takes the place of the client when an answer is to be lost.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header         { return n.header }
func (n nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (n nowhere) WriteHeader(int)             {}

// deaf hides from the reverse proxy that the client has gone.
type deaf struct{ http.ResponseWriter }

// Unwrap lets an http.ResponseController find the client's connection.
func (d deaf) Unwrap() http.ResponseWriter { return d.ResponseWriter }

// sleep waits for d, or until ctx or stop ends it.
func sleep(ctx context.Context, d time.Duration, stop <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-stop:
	}
}
