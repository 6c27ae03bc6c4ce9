package flight

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/leaktest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/internal/segment/segmenttest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// patience bounds what must happen promptly. It is also how long a peer may take to
// say that it is there, but in the tests of just that: on a busy machine a test's
// own goroutines may have nothing to say for longer than a streamer's.
const patience = time.Minute

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// serve runs a server until the test ends or stop is called.
func serve(t testing.TB, cfg ServerConfig, src segment.Source) (s *Server, stop func()) {
	t.Helper()
	if cfg.alive == 0 {
		cfg.alive, cfg.answer = defaultAlive, patience
	}
	s, err := NewServer(cfg, src, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return s, run(t, s)
}

// run runs s until the test ends or stop is called, and waits for its end.
func run(t testing.TB, s *Server) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// connect gives a Source for address that is closed when the test ends.
func connect(t testing.TB, cfg ClientConfig, address string) segment.Source {
	t.Helper()
	if cfg.alive == 0 {
		cfg.alive, cfg.answer = defaultAlive, patience
	}
	c, err := NewClient(cfg, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close the client: %v", err)
		}
	})
	s, err := c.Source(segment.Location{Instance: "i", Address: address})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// example is a segment of n changes.
func example(n int) segmenttest.Segment {
	cs := segmenttest.NewMaker(0x1000).Mixed(n)
	return segmenttest.Segment{Ref: segmenttest.RefOf(segmenttest.Before(0x1000), cs), Changes: cs}
}
