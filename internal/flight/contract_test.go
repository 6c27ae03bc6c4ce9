package flight

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/internal/segment/segmenttest"
)

func TestSourceOverFlightKeepsTheContract(t *testing.T) {
	segmenttest.Run(t, func(t *testing.T, segs []segmenttest.Segment) segment.Source {
		m := segmenttest.NewMemory(segs...)
		s, stop := serve(t, ServerConfig{}, m)
		t.Cleanup(func() {
			// Runs after the Readers' own cleanup, before the client's.
			stop()
			if n := m.Open(); n != 0 {
				t.Errorf("%d readers of the streamer were left open", n)
			}
		})
		return connect(t, ClientConfig{}, s.Address())
	})
}

func TestEverySegmentErrorKeepsItsTextAndIdentity(t *testing.T) {
	seg := example(10)
	for _, want := range []error{segment.ErrNotYet, segment.ErrGone, segment.ErrUnknown} {
		for _, late := range []bool{false, true} {
			src := &failing{err: errors.Join(errors.New("the ring says"), want), late: late}
			s, _ := serve(t, ServerConfig{}, src)
			_, err := segmenttest.ReadAll(t.Context(), t, connect(t, ClientConfig{}, s.Address()), seg.Ref.Ticket())
			for _, other := range []error{segment.ErrNotYet, segment.ErrGone, segment.ErrUnknown} {
				if errors.Is(err, other) != (other == want) {
					t.Errorf("errors.Is(%v, %v) is wrong", err, other)
				}
			}
			for _, part := range []string{"the ring says", s.Address(), seg.Ref.First.String(), seg.Ref.Pipeline} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
		}
	}
}

func TestAnyOtherErrorOfTheSourceSaysWhereAndWhat(t *testing.T) {
	seg := example(10)
	s, _ := serve(t, ServerConfig{}, &failing{err: errors.New("out of paper " + strings.Repeat("ä", 20_000))})
	_, err := segmenttest.ReadAll(t.Context(), t, connect(t, ClientConfig{}, s.Address()), seg.Ref.Ticket())
	if err == nil || !strings.Contains(err.Error(), "out of paper") || !strings.Contains(err.Error(), s.Address()) {
		t.Errorf("error %v", err)
	}
	if errors.Is(err, ErrUnreachable) || errors.Is(err, ErrProtocol) {
		t.Errorf("error %v is taken for another", err)
	}
}

func TestErrorAfterRowsIsAnErrorAndNoShortSegment(t *testing.T) {
	seg := example(20_000)
	s, _ := serve(t, ServerConfig{}, &failing{err: segment.ErrGone, late: true, first: seg.Changes})
	got, err := segmenttest.ReadAll(t.Context(), t, connect(t, ClientConfig{}, s.Address()), seg.Ref.Ticket())
	if len(got) == 0 || !errors.Is(err, segment.ErrGone) {
		t.Errorf("%d changes and %v", len(got), err)
	}
}

func TestCancelEndsAFetchThatWaits(t *testing.T) {
	seg := example(10)
	src := &hanging{entered: make(chan struct{}, 1)}
	s, stop := serve(t, ServerConfig{Grace: time.Nanosecond}, src)
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := connect(t, ClientConfig{}, s.Address()).Fetch(ctx, seg.Ref.Ticket())
		ended <- err
	}()
	<-src.entered
	why := errors.New("paused by an operator")
	cancel(why)
	select {
	case err := <-ended:
		if !errors.Is(err, why) {
			t.Errorf("error %v, want the cause of the context's end", err)
		}
	case <-time.After(patience):
		t.Fatal("the fetch goes on")
	}
	stop()
}

func TestStreamerThatStopsMidStreamIsAnError(t *testing.T) {
	seg := example(10)
	src := &hanging{entered: make(chan struct{}, 1), first: example(5000).Changes}
	s, stop := serve(t, ServerConfig{Grace: time.Nanosecond}, src)
	client := connect(t, ClientConfig{}, s.Address())
	ended := make(chan error, 1)
	go func() {
		_, err := segmenttest.ReadAll(t.Context(), t, client, seg.Ref.Ticket())
		ended <- err
	}()
	<-src.entered
	stop()
	if err := <-ended; !errors.Is(err, ErrUnreachable) {
		t.Errorf("error %v", err)
	}
	_, err := client.Fetch(t.Context(), seg.Ref.Ticket())
	if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "data.advertise") {
		t.Errorf("a fetch from a stopped streamer: %v", err)
	}
}

func TestRunningFetchesFinishInTheGracePeriod(t *testing.T) {
	seg := example(5000)
	src := &hanging{entered: make(chan struct{}, 1), first: seg.Changes, resume: make(chan struct{})}
	s, stop := serve(t, ServerConfig{Grace: time.Minute}, src)
	client := connect(t, ClientConfig{}, s.Address())
	var wg sync.WaitGroup
	wg.Go(func() {
		got, err := segmenttest.ReadAll(t.Context(), t, client, seg.Ref.Ticket())
		if err != nil || len(got) != len(seg.Changes) {
			t.Errorf("%d changes and %v", len(got), err)
		}
	})
	<-src.entered
	wg.Go(stop)
	for deadline := time.Now().Add(patience); ; {
		c, err := net.Dial("tcp", s.Address())
		if err != nil {
			break // it is stopping
		}
		_ = c.Close()
		if time.Now().After(deadline) {
			t.Fatal("it takes connections while it is stopping")
		}
	}
	close(src.resume)
	wg.Wait()
}

// TestMessageOfHundredsOfMegabytesPasses also watches that neither end copies
// it more than once: source, receiver's copy and the batches under way.
func TestMessageOfHundredsOfMegabytesPasses(t *testing.T) {
	const size = 300 << 20
	m := segmenttest.NewMaker(0x1000)
	rel := segmenttest.Relation(16500)
	cs := []change.Change{
		m.Change(change.Insert, rel, segmenttest.Raw('I', 10, 1)),
		m.Change(change.Insert, rel, segmenttest.Raw('I', size, 2)),
		m.Change(change.Insert, rel, segmenttest.Raw('I', 10, 3)),
	}
	seg := segmenttest.Segment{Ref: segmenttest.RefOf(segmenttest.Before(0x1000), cs), Changes: cs}
	s, _ := serve(t, ServerConfig{}, segmenttest.NewMemory(seg))
	// So that the heap is what is in use, and not what waits to be collected.
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	got, err := segmenttest.ReadAll(t.Context(), t, connect(t, ClientConfig{}, s.Address()), seg.Ref.Ticket())
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if d := segmenttest.Diff(got, cs); d != "" {
		t.Error(d)
	}
	if grown := after.HeapSys - before.HeapSys; grown > size+size/2 {
		t.Errorf("the heap grew by %d MB for a message of %d MB", grown>>20, size>>20)
	}
}

// failing is a Source that fails: at once, or after the changes in first.
type failing struct {
	err   error
	late  bool
	first []change.Change
}

func (f *failing) Fetch(context.Context, segment.Ticket) (segment.Reader, error) {
	if !f.late {
		return nil, f.err
	}
	return &script{first: f.first, then: func() error { return f.err }}, nil
}

// hanging is a Source that tells when the changes in first have been read, and
// then waits for resume, or for the context.
type hanging struct {
	entered chan struct{}
	first   []change.Change
	resume  chan struct{}
	// left, if any, gets what ended the context.
	left chan error
}

func (h *hanging) Fetch(ctx context.Context, _ segment.Ticket) (segment.Reader, error) {
	return &script{first: h.first, then: func() error {
		h.entered <- struct{}{}
		select {
		case <-ctx.Done():
			if h.left != nil {
				h.left <- ctx.Err()
			}
			return ctx.Err()
		case <-h.resume:
			return io.EOF
		}
	}}, nil
}

type script struct {
	first []change.Change
	then  func() error
}

func (s *script) Next() ([]change.Change, error) {
	if cs := s.first; len(cs) > 0 {
		s.first = nil
		return cs, nil
	}
	return nil, s.then()
}

func (s *script) Close() error { return nil }
