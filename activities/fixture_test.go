package activities_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/activities"
	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

const lakeURL = "s3://bucket/lake"

// rowData is in every row, and must be in no error.
const rowData = "row-data-of-a-customer"

var relation = &change.Relation{
	OID: 16384, Hash: 7, Namespace: "public", Name: "orders", Identity: 'd',
	Columns: []change.Column{{Name: "id", Type: 25, Modifier: -1, Key: true}},
}

// insert is the Insert message of protocol version 1 with one text column.
func insert(value string) []byte {
	b := []byte{'I'}
	b = binary.BigEndian.AppendUint32(b, relation.OID)
	b = append(b, 'N')
	b = binary.BigEndian.AppendUint16(b, 1)
	b = append(b, 't')
	b = binary.BigEndian.AppendUint32(b, uint32(len(value)))
	return append(b, value...)
}

// changes makes n rows of one transaction.
func changes(n int) []change.Change {
	cs := make([]change.Change, n)
	for i := range cs {
		cs[i] = change.Change{
			Position: change.Position{Timeline: 1, LSN: 0x100, Ordinal: uint64(i)}, LSN: 0x90,
			CommitTime: change.Time(20000 * 24 * 3600 * 1e6), Received: 1, Relation: relation,
			Raw: insert(rowData), XID: 700, Operation: change.Insert,
		}
	}
	return cs
}

// refOf is the reference of a segment of cs.
func refOf(cs []change.Change) segment.Ref {
	h := segment.NewHasher()
	for i := range cs {
		h.Add(&cs[i])
	}
	return segment.Ref{
		Pipeline: "orders", SystemID: "7300000000000000001", Lake: lakeURL,
		First: cs[0].Position, Last: cs[len(cs)-1].Position, Follows: change.JustBefore(1, 0x80),
		Day: cs[0].CommitTime.Day(), Rows: h.Rows(), Bytes: h.Bytes(), Digest: h.Sum(),
		Tables: []string{"public.orders"}, TableCount: 1,
	}
}

// source serves cs, in two batches, or fails.
type source struct {
	changes []change.Change
	// fetchErr is Fetch's, nextErr that of the first Next, dialErr that of
	// finding the source.
	dialErr, fetchErr, nextErr error
	// block makes Next wait until it is closed.
	block chan struct{}
	// asked is closed by the first Fetch.
	asked chan struct{}

	mu      sync.Mutex
	fetched int
	open    int
}

func (s *source) Fetch(ctx context.Context, _ segment.Ticket) (segment.Reader, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fetched++; s.fetched == 1 {
		close(s.asked)
	}
	if s.fetchErr != nil {
		return nil, s.fetchErr
	}
	s.open++
	return &reader{ctx: ctx, source: s, rest: s.changes}, nil
}

func (s *source) fetches() (fetched, open int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fetched, s.open
}

type reader struct {
	ctx    context.Context
	source *source
	rest   []change.Change
	closed bool
}

func (r *reader) Next() ([]change.Change, error) {
	if r.closed {
		return nil, errors.New("Next after Close")
	}
	if r.source.block != nil {
		select {
		case <-r.source.block:
		case <-r.ctx.Done():
			return nil, context.Cause(r.ctx)
		}
	}
	if r.source.nextErr != nil {
		return nil, r.source.nextErr
	}
	if len(r.rest) == 0 {
		return nil, io.EOF
	}
	n := (len(r.rest) + 1) / 2
	batch := r.rest[:n]
	r.rest = r.rest[n:]
	return batch, nil
}

func (r *reader) Close() error {
	if !r.closed {
		r.closed = true
		r.source.mu.Lock()
		r.source.open--
		r.source.mu.Unlock()
	}
	return nil
}

// store is a lake in memory whose calls can be made to fail.
type store struct {
	*lake.Memory
	// putErr is Put's; with lost the object is stored all the same. Each is
	// used up by one call unless always.
	putErr, headErr error
	// removeErr is Remove's, used up by one call.
	removeErr    error
	lost, always bool
	heads, puts  int
	// hold makes the first Put wait until it is closed.
	hold    chan struct{}
	holding atomic.Bool
}

func (s *store) Put(ctx context.Context, key string, body []byte, cond lake.Condition) (string, error) {
	if s.hold != nil && s.holding.CompareAndSwap(false, true) {
		<-s.hold
	}
	s.puts++
	err := s.putErr
	if err != nil && !s.always {
		s.putErr = nil
	}
	if err != nil && !s.lost {
		return "", err
	}
	etag, putErr := s.Memory.Put(ctx, key, body, cond)
	if err != nil {
		return "", err
	}
	return etag, putErr
}

func (s *store) Head(ctx context.Context, key string) (lake.Info, error) {
	s.heads++
	if s.headErr != nil {
		return lake.Info{}, s.headErr
	}
	return s.Memory.Head(ctx, key)
}

func (s *store) Remove(ctx context.Context, key string) error {
	if err := s.removeErr; err != nil {
		s.removeErr = nil
		return err
	}
	return s.Memory.Remove(ctx, key)
}

func storeFailure(kind lake.FailureKind, after time.Duration) error {
	return &lake.Error{Op: "write", Object: lakeURL + "/x", Kind: kind, RetryAfter: after, Err: errors.New("the store says no")}
}

// fixture is a worker's activities over a source and a store of the test's.
type fixture struct {
	*activities.Activities
	source *source
	store  *store
	ref    segment.Ref
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{source: &source{changes: changes(5), asked: make(chan struct{})}, store: &store{Memory: lake.NewMemory()}}
	f.ref = refOf(f.source.changes)
	f.Activities = &activities.Activities{
		Source: func(segment.Location) (segment.Source, error) { return f.source, f.source.dialErr },
		Lake:   lake.New(lakeURL, f.store),
		Logger: slog.New(slog.DiscardHandler),
	}
	t.Cleanup(func() {
		if _, open := f.source.fetches(); open != 0 {
			t.Errorf("%d readers were not closed", open)
		}
	})
	return f
}

func (f *fixture) input() activities.UploadInput {
	return activities.UploadInput{
		Version: activities.Version, Ref: f.ref,
		Source: segment.Location{Instance: "a", Address: "127.0.0.1:4001"},
	}
}

// metadata reads the footer of an object in the lake.
func (f *fixture) metadata(t *testing.T, key string) lake.Metadata {
	t.Helper()
	m, err := lake.New(lakeURL, f.store.Memory).ReadMetadata(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
