package flight

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tidemark-cdc/tidemark/internal/pgtest"
	"github.com/tidemark-cdc/tidemark/internal/segment/segmenttest"
)

func TestConnectionCutAnywhereIsNeverAShortSegment(t *testing.T) {
	seg := example(3000)
	s, _ := serve(t, ServerConfig{}, segmenttest.NewMemory(seg))
	whole := 0
	for cut := 20; whole == 0; cut = cut*3/2 + 1 {
		got, err := segmenttest.ReadAll(t.Context(), t, connect(t, ClientConfig{}, cutter(t, s.Address(), cut)), seg.Ref.Ticket())
		switch {
		case err == nil && len(got) == len(seg.Changes):
			whole = cut
		case err == nil:
			t.Fatalf("cut after %d bytes: %d changes of %d and no error", cut, len(got), len(seg.Changes))
		case !errors.Is(err, ErrUnreachable):
			t.Errorf("cut after %d bytes: %v", cut, err)
		}
	}
	if whole < 100_000 {
		t.Errorf("the whole segment came through %d bytes", whole)
	}
}

// cutter forwards connections to address and cuts each after n bytes of what
// comes back.
func cutter(t *testing.T, address string, n int) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = lis.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			in, err := lis.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", address)
			if err != nil {
				t.Errorf("cutter: %v", err)
				_ = in.Close()
				return
			}
			wg.Go(func() { _, _ = io.Copy(out, in); _ = out.Close() })
			wg.Go(func() {
				_, _ = io.CopyN(in, out, int64(n))
				_ = in.Close()
				_ = out.Close()
			})
		}
	})
	return lis.Addr().String()
}

func TestStreamerThatDoesNotRunIsUnreachableAndTheErrorSaysWhatToDo(t *testing.T) {
	ports, err := pgtest.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0]))
	src := connect(t, ClientConfig{}, address)
	_, err = src.Fetch(t.Context(), example(1).Ref.Ticket())
	if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), address) || !strings.Contains(err.Error(), "check that it runs") {
		t.Errorf("error %v", err)
	}

	// When it is back there, the same Source reaches it.
	seg := example(10)
	s, err := NewServer(ServerConfig{Listen: address}, segmenttest.NewMemory(seg), quiet)
	if err != nil {
		t.Fatal(err)
	}
	run(t, s)
	deadline := time.Now().Add(patience)
	for {
		_, err := segmenttest.ReadAll(t.Context(), t, src, seg.Ref.Ticket())
		if err == nil {
			break
		}
		if !errors.Is(err, ErrUnreachable) || time.Now().After(deadline) {
			t.Fatalf("after its return: %v", err)
		}
	}
}

func TestPeerThatAcceptsAndSaysNothingEndsWithAnError(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	begun := time.Now()
	_, err = connect(t, ClientConfig{DialTimeout: 100 * time.Millisecond}, lis.Addr().String()).Fetch(t.Context(), example(1).Ref.Ticket())
	if !errors.Is(err, ErrUnreachable) || time.Since(begun) > patience {
		t.Errorf("after %s: %v", time.Since(begun), err)
	}
}

// TestPeerThatVanishesIsNoticed takes 13 s: gRPC asks no sooner than every 10 s,
// and a peer that is there has to be able to answer on a busy machine too.
func TestPeerThatVanishesIsNoticed(t *testing.T) {
	const answer = 3 * time.Second
	for name, c := range map[string]struct {
		server, client time.Duration
		noticed        func(src *hanging, fetch <-chan error) error
	}{
		"the worker, by the streamer": {answer, 0, func(src *hanging, _ <-chan error) error { return <-src.left }},
		"the streamer, by the worker": {0, 10 * time.Second, func(_ *hanging, fetch <-chan error) error { return <-fetch }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seg := example(5000)
			src := &hanging{entered: make(chan struct{}, 1), left: make(chan error, 1), first: seg.Changes}
			s, _ := serve(t, ServerConfig{Grace: time.Nanosecond, alive: c.server, answer: answer}, src)
			var link silencer
			client := connect(t, ClientConfig{alive: c.client, answer: answer}, link.start(t, s.Address()))
			ctx, cancel := context.WithCancel(context.Background())
			fetch := make(chan error, 1)
			var fetching sync.WaitGroup
			fetching.Go(func() {
				_, err := segmenttest.ReadAll(ctx, t, client, seg.Ref.Ticket())
				fetch <- err
			})
			<-src.entered
			link.silent.Store(true)
			noticed := make(chan error, 1)
			go func() { noticed <- c.noticed(src, fetch) }()
			select {
			case err := <-noticed:
				if err == nil {
					t.Error("it ended without an error")
				}
			case <-time.After(patience):
				t.Error("nobody noticed")
			}
			cancel()
			fetching.Wait()
			link.stop()
		})
	}
}

// silencer forwards connections until it is silent: then it swallows what comes
// and closes nothing, as a host does whose network has gone.
type silencer struct {
	silent atomic.Bool
	mu     sync.Mutex
	open   []io.Closer
	wg     sync.WaitGroup
}

func (s *silencer) start(t *testing.T, address string) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.open = append(s.open, lis)
	t.Cleanup(s.stop)
	s.wg.Go(func() {
		for {
			in, err := lis.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", address)
			if err != nil {
				_ = in.Close()
				continue
			}
			s.mu.Lock()
			s.open = append(s.open, in, out)
			s.mu.Unlock()
			s.wg.Go(func() { s.forward(in, out) })
			s.wg.Go(func() { s.forward(out, in) })
		}
	})
	return lis.Addr().String()
}

func (s *silencer) forward(to io.Writer, from io.Reader) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		if s.silent.Load() {
			continue
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

func (s *silencer) stop() {
	s.mu.Lock()
	for _, c := range s.open {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

func TestTicketsThatNoSegmentCanHaveAreRefusedByTheServer(t *testing.T) {
	seg := example(10)
	s, _ := serve(t, ServerConfig{}, segmenttest.NewMemory(seg))
	ticket := seg.Ref.Ticket()
	ticket.First, ticket.Last = ticket.Last, ticket.First
	_, err := connect(t, ClientConfig{}, s.Address()).Fetch(t.Context(), ticket)
	if !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), "before its first") {
		t.Errorf("error %v", err)
	}
	ticket.Pipeline = strings.Repeat("p", maxTicket)
	if _, err := connect(t, ClientConfig{}, s.Address()).Fetch(t.Context(), ticket); err == nil {
		t.Error("no error for a pipeline's name of 4 KiB")
	}
}

func TestPoolKeepsOneConnectionForEachAddressAndFewIdleOnes(t *testing.T) {
	dialed := 0
	p := newPool(time.Hour, func(address string) (*grpc.ClientConn, error) {
		dialed++
		return grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	})
	a, releaseA, err := p.get("a:1")
	if err != nil {
		t.Fatal(err)
	}
	b, releaseB, _ := p.get("a:1")
	if a != b || dialed != 1 {
		t.Errorf("%d connections for one address", dialed)
	}
	releaseA()
	releaseA()
	if users := p.conns["a:1"].users; users != 1 {
		t.Errorf("%d users after one of two released it twice", users)
	}
	for i := range 3 * maxIdle {
		_, release, err := p.get("b:" + string(rune('A'+i)))
		if err != nil {
			t.Fatal(err)
		}
		release()
	}
	if n := len(p.conns); n != maxIdle+1 {
		t.Errorf("%d connections are kept, want %d idle ones and the one in use", n, maxIdle)
	}
	if _, ok := p.conns["a:1"]; !ok {
		t.Error("the connection in use was given up")
	}
	releaseB()
	p.mu.Lock()
	p.sweep(time.Now().Add(2 * time.Hour))
	p.mu.Unlock()
	if n := len(p.conns); n != 0 {
		t.Errorf("%d connections are kept beyond the idle timeout", n)
	}
	if err := p.close(); err != nil {
		t.Error(err)
	}
	if _, _, err := p.get("a:1"); err == nil {
		t.Error("a closed pool gives connections")
	}
}

func TestClosedReaderGivesErrorsAndNoChanges(t *testing.T) {
	seg := example(10)
	s, _ := serve(t, ServerConfig{}, segmenttest.NewMemory(seg))
	r, err := connect(t, ClientConfig{}, s.Address()).Fetch(t.Context(), seg.Ref.Ticket())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if cs, err := r.Next(); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("%d changes and %v", len(cs), err)
	}
}
