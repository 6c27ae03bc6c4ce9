package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// Live is what the status page of a streamer is made of. The functions are
// called from many goroutines at once and return without waiting for anything.
type Live struct {
	Snapshot func() Snapshot
	// Sample is asked every five seconds, whether or not somebody looks.
	Sample func() Sample
	// History is filled with what Sample gives.
	History *History
}

const (
	// snapshotEvery is how often a listener is sent a snapshot.
	snapshotEvery = time.Second
	// maxListeners bounds the pages that are open at once.
	maxListeners = 16
	// slowest is how long a listener may take to accept what it is sent, before
	// it is dropped. Nobody else waits for it.
	slowest = 5 * time.Second
)

// stream sends what the page shows to those who have it open.
type stream struct {
	live   *Live
	logger *slog.Logger
	// every is snapshotEvery, and slowest the bound of that name; tests set them.
	every, slowest time.Duration

	mu        sync.Mutex
	listeners int
	// snapshot is the encoded one that was made last, at made.
	snapshot []byte
	made     time.Time
}

func newStream(live *Live, logger *slog.Logger) *stream {
	return &stream{live: live, logger: logger, every: snapshotEvery, slowest: slowest}
}

// sample fills the history until ctx ends.
func (s *stream) sample(ctx context.Context) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		s.live.History.Add(time.Now(), s.live.Sample())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// enter takes a listener in, if there is room for one.
func (s *stream) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listeners >= maxListeners {
		return false
	}
	s.listeners++
	return true
}

func (s *stream) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners--
}

// encoded is a snapshot of now, or the one that another listener was sent a
// moment ago.
func (s *stream) encoded(now time.Time) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.snapshot != nil && now.Sub(s.made) < s.every/2 {
		return s.snapshot, nil
	}
	b, err := json.Marshal(s.live.Snapshot())
	if err != nil {
		s.logger.Warn("encode a snapshot for the status page", "error", err)
		return nil, err
	}
	s.snapshot, s.made = b, now
	return b, nil
}

// ServeHTTP answers /events with server-sent events, as the HTML standard has
// them, until the reader goes or the process stops: "history", an array of all
// points, at first, and "points", an array of those that were added since; and
// "snapshot" each second, which also tells the reader that the process is there.
func (s *stream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		w.Header().Set("Retry-After", "10")
		http.Error(w, fmt.Sprintf("the status page is open %d times already; close one of them", maxListeners), http.StatusServiceUnavailable)
		return
	}
	defer s.leave()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // for proxies that would keep it back
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	event, seen := "history", 0
	for {
		points, added := s.live.History.since(seen)
		if event == "history" || len(points) > 0 {
			b, err := json.Marshal(append([]Point{}, points...))
			if err != nil || s.send(w, event, b) != nil {
				return
			}
		}
		event, seen = "points", added
		b, err := s.encoded(time.Now())
		if err != nil || s.send(w, "snapshot", b) != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

// send writes one event. An error says that the reader has gone or is too slow.
func (s *stream) send(w http.ResponseWriter, event string, data []byte) error {
	c := http.NewResponseController(w)
	if err := c.SetWriteDeadline(time.Now().Add(s.slowest)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, data); err != nil {
		return err
	}
	return c.Flush()
}
