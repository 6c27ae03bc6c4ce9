package segmenttest

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// State is how a Source stands to the changes of a segment.
type State int

// The states of a Segment.
const (
	// Ready: they can be fetched.
	Ready State = iota
	// NotYet: they have not been read again from Postgres; segment.ErrNotYet.
	NotYet
	// Gone: they were dropped; segment.ErrGone.
	Gone
)

// Segment is a segment with its changes.
type Segment struct {
	Ref     segment.Ref
	Changes []change.Change
	State   State
}

// Memory is a Source of segments in memory. Safe for concurrent use.
type Memory struct {
	// Chunk is how many changes Next hands out at once. Zero: 100. Not to be
	// changed while fetches run.
	Chunk int

	mu       sync.Mutex
	segments map[segment.Ticket]Segment
	open     int
}

// NewMemory returns a Source of segs.
func NewMemory(segs ...Segment) *Memory {
	m := &Memory{segments: map[segment.Ticket]Segment{}}
	m.Put(segs...)
	return m
}

// Put adds segments, or replaces those with the same reference.
func (m *Memory) Put(segs ...Segment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range segs {
		m.segments[s.Ref.Ticket()] = s
	}
}

// Open counts the Readers that are not closed.
func (m *Memory) Open() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.open
}

// Fetch implements segment.Source.
func (m *Memory) Fetch(ctx context.Context, t segment.Ticket) (segment.Reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("fetch segment %s: %w", t.First, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.segments[t]
	switch {
	case !ok:
		return nil, fmt.Errorf("fetch segment %s: %w", t.First, segment.ErrUnknown)
	case s.State == NotYet:
		return nil, fmt.Errorf("fetch segment %s: %w", t.First, segment.ErrNotYet)
	case s.State == Gone:
		return nil, fmt.Errorf("fetch segment %s: %w", t.First, segment.ErrGone)
	}
	chunk := m.Chunk
	if chunk == 0 {
		chunk = 100
	}
	m.open++
	return &memoryReader{
		chunks: slices.Collect(slices.Chunk(s.Changes, chunk)), ended: ctx.Err,
		close: func() { m.mu.Lock(); m.open--; m.mu.Unlock() },
	}, nil
}

type memoryReader struct {
	chunks [][]change.Change
	ended  func() error
	close  func()
}

// Next implements segment.Reader.
func (r *memoryReader) Next() ([]change.Change, error) {
	if err := r.ended(); err != nil {
		return nil, err
	}
	if len(r.chunks) == 0 {
		return nil, io.EOF
	}
	c := r.chunks[0]
	r.chunks = r.chunks[1:]
	return c, nil
}

// Close implements segment.Reader.
func (r *memoryReader) Close() error {
	if r.close != nil {
		r.close()
		r.close, r.chunks = nil, nil
	}
	return nil
}
