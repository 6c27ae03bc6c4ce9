package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// TemporalProxy stands between one process and Temporal's frontend, passes every
// call on as it is, and breaks those that it is told to: the seam at which a
// test ends the process, or has a call come late. All calls of the frontend are
// of one request and one response.
type TemporalProxy struct {
	listener net.Listener
	server   *grpc.Server
	served   chan error
	conn     *grpc.ClientConn

	mu     sync.Mutex
	breaks []*Break // those that have not met their call
}

// Moment is when a Break happens.
type Moment string

// The moments of a call.
const (
	// Before: Temporal never sees the call.
	Before Moment = "before"
	// After: Temporal has answered, and the caller does not hear.
	After Moment = "after"
	// Late: the caller gets an error, and Temporal sees the call when it is
	// released.
	Late Moment = "late"
)

// Break is one call that is broken.
type Break struct {
	method string
	moment Moment
	then   func()
	met    chan struct{}
	late   chan struct{}
	passed chan struct{}
	once   sync.Once
}

// NewTemporalProxy starts a proxy on a free loopback port before the frontend at
// host:port.
func NewTemporalProxy(frontend string) (*TemporalProxy, error) {
	port, err := FreePorts(1)
	if err != nil {
		return nil, fmt.Errorf("start the Temporal proxy: %w", err)
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port[0]))
	if err != nil {
		return nil, fmt.Errorf("start the Temporal proxy: %w", err)
	}
	const largest = 64 << 20
	conn, err := grpc.NewClient(frontend, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{}), grpc.MaxCallRecvMsgSize(largest), grpc.MaxCallSendMsgSize(largest)))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the Temporal proxy: %w", err), l.Close())
	}
	p := &TemporalProxy{listener: l, conn: conn, served: make(chan error, 1)}
	p.server = grpc.NewServer(grpc.ForceServerCodec(raw{}), grpc.UnknownServiceHandler(p.pass),
		grpc.MaxRecvMsgSize(largest), grpc.MaxSendMsgSize(largest))
	go func() { p.served <- p.server.Serve(l) }()
	return p, nil
}

// Address is the proxy's host:port.
func (p *TemporalProxy) Address() string { return p.listener.Addr().String() }

// Close releases what is late and ends the proxy.
func (p *TemporalProxy) Close() error {
	p.mu.Lock()
	p.breaks = nil
	p.mu.Unlock()
	p.server.Stop()
	return errors.Join(<-p.served, p.conn.Close())
}

// Break breaks the next call of a method, such as StartWorkflowExecution, and
// calls then at that moment, from another goroutine.
func (p *TemporalProxy) Break(method string, moment Moment, then func()) *Break {
	b := &Break{method: method, moment: moment, then: then, met: make(chan struct{}), late: make(chan struct{}), passed: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.breaks = append(p.breaks, b)
	return b
}

// Met is closed when the call has come and then has returned.
func (b *Break) Met() <-chan struct{} { return b.met }

// Release has Temporal see a call that is Late, and waits for its answer.
func (b *Break) Release() {
	b.once.Do(func() { close(b.late) })
	<-b.passed
}

// take finds the break that a call meets.
func (p *TemporalProxy) take(method string) *Break {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, b := range p.breaks {
		if b.method == method {
			p.breaks = append(p.breaks[:i:i], p.breaks[i+1:]...)
			return b
		}
	}
	return nil
}

// pass handles one call.
func (p *TemporalProxy) pass(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	ctx := stream.Context()
	var in, out []byte
	if err := stream.RecvMsg(&in); err != nil {
		return err
	}
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, md)
	}
	b := p.take(path.Base(method))
	if b == nil {
		if err := p.conn.Invoke(ctx, method, &in, &out); err != nil {
			return err
		}
		return stream.SendMsg(&out)
	}
	defer close(b.met)
	// Temporal's answer to a broken call is nobody's concern.
	switch b.moment {
	case After:
		_ = p.conn.Invoke(ctx, method, &in, &out)
	case Late:
		go func() {
			defer close(b.passed)
			<-b.late
			_ = p.conn.Invoke(context.WithoutCancel(ctx), method, &in, &out)
		}()
	}
	b.then()
	return status.Error(codes.Unavailable, "the proxy has broken this call")
}

// raw passes messages on as their bytes.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (raw) Unmarshal(b []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), b...)
	return nil
}
