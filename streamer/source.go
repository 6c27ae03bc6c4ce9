package streamer

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer/ring"
)

// shelf holds the segments whose rows may be fetched: those in flight. It is
// the streamer's segment.Source, for a worker in the same process and for the
// data plane's server alike.
type shelf struct {
	pipeline string

	mu   sync.Mutex
	held map[change.Position]shelved // by first position
	buf  *buffer                     // of the present life; nil between lives
}

type shelved struct {
	ticket segment.Ticket
	view   ring.View
}

func newShelf(pipeline string) *shelf {
	return &shelf{pipeline: pipeline, held: map[change.Position]shelved{}}
}

// begin forgets everything of the life before.
func (s *shelf) begin(buf *buffer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = map[change.Position]shelved{}
	s.buf = buf
}

func (s *shelf) put(ref segment.Ref, v ring.View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[ref.First] = shelved{ticket: ref.Ticket(), view: v}
}

// committed is when the first change of a segment on the shelf was committed, by
// the server's clock.
func (s *shelf) committed(first change.Position) (change.Time, bool) {
	s.mu.Lock()
	v := s.held[first].view
	s.mu.Unlock()
	if c := firstOf(v); c != nil {
		return c.CommitTime, true
	}
	return 0, false
}

func (s *shelf) drop(first change.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, first)
}

// Fetch implements segment.Source. The Reader hands out the ring's own memory,
// which is never reused: see package ring.
func (s *shelf) Fetch(_ context.Context, t segment.Ticket) (segment.Reader, error) {
	s.mu.Lock()
	h, ok := s.held[t.First]
	buf := s.buf
	s.mu.Unlock()
	if ok && h.ticket == t {
		return newViewReader(h.view), nil
	}
	return nil, fmt.Errorf("fetch segment %s of pipeline %s: %w", t.First, t.Pipeline, s.why(t, buf))
}

// why tells what is known of a segment that is not on the shelf.
func (s *shelf) why(t segment.Ticket, buf *buffer) error {
	if t.Pipeline != s.pipeline {
		return fmt.Errorf("%w (it serves pipeline %s)", segment.ErrUnknown, s.pipeline)
	}
	if buf == nil {
		return segment.ErrNotYet
	}
	switch {
	case t.Last.Compare(buf.ack().Last) <= 0:
		return segment.ErrGone
	case buf.lastReceived().Less(t.Last):
		return segment.ErrNotYet
	}
	// Finished inside a transaction that is not, about to be adopted, or never
	// heard of: the worker looks into the lake and asks again.
	return segment.ErrUnknown
}

type viewReader struct {
	chunks [][]change.Change
}

func newViewReader(v ring.View) *viewReader {
	r := &viewReader{}
	for c := range v.Chunks() {
		r.chunks = append(r.chunks, c)
	}
	return r
}

func (r *viewReader) Next() ([]change.Change, error) {
	if len(r.chunks) == 0 {
		return nil, io.EOF
	}
	c := r.chunks[0]
	r.chunks = r.chunks[1:]
	return c, nil
}

func (r *viewReader) Close() error { r.chunks = nil; return nil }
