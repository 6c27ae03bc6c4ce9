package streamer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// row is one change as an upload has seen it.
type row struct {
	Position change.Position
	Raw      string
}

// fakeTemporal is a Tracker whose memory outlives streamers, and a worker that
// "uploads" by fetching and keeping the rows. Segments can be held back.
type fakeTemporal struct {
	mu       sync.Mutex
	entries  map[string]*entry
	sources  map[string]segment.Source // by instance
	held     func(segment.Ref) bool
	released chan struct{} // closed and replaced when held changes
	starts   int
	runs     int
	uploads  sync.WaitGroup
	// store, if set, puts the object of a segment into the lake before the
	// segment completes.
	store func(segment.Ref) error
	// since is when runs begin, as Start and Restart say.
	since time.Time
}

type entry struct {
	rec  segment.Record
	at   segment.Location
	rows []row
	// closed is closed when the run has ended; moved when at has changed.
	closed, moved chan struct{}
	cancel        context.CancelFunc
}

func newFakeTemporal() *fakeTemporal {
	return &fakeTemporal{entries: map[string]*entry{}, sources: map[string]segment.Source{}, released: make(chan struct{}), held: func(segment.Ref) bool { return false }}
}

// serve makes a streamer's rows reachable under its instance's name.
func (f *fakeTemporal) serve(instance string, s segment.Source) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sources[instance] = s
}

// vanish takes a streamer's rows away.
func (f *fakeTemporal) vanish(instance string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.sources, instance)
}

// hold makes uploads of the segments that held names wait.
func (f *fakeTemporal) hold(held func(segment.Ref) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = held
	close(f.released)
	f.released = make(chan struct{})
}

func (f *fakeTemporal) Start(_ context.Context, ref segment.Ref, at segment.Location) (segment.Record, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.starts++
	if e, ok := f.entries[ref.WorkflowID()]; ok && !e.rec.GivenUp {
		rec := e.rec
		rec.Started = false
		return rec, nil
	}
	return f.run(ref, at), nil
}

func (f *fakeTemporal) Restart(_ context.Context, ref segment.Ref, at segment.Location) (segment.Record, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.entries[ref.WorkflowID()]
	if e == nil {
		return segment.Record{State: segment.None}, nil
	}
	if e.rec.State != segment.Broken || e.rec.Ref.Last != ref.Last || e.rec.Ref.Digest != ref.Digest {
		rec := e.rec
		rec.Started = false
		return rec, nil
	}
	return f.run(ref, at), nil
}

// run begins a run; f.mu is held.
func (f *fakeTemporal) run(ref segment.Ref, at segment.Location) segment.Record {
	ctx, cancel := context.WithCancel(context.Background())
	f.runs++
	e := &entry{
		rec: segment.Record{State: segment.Running, RunID: fmt.Sprint(f.runs), Since: f.since, Ref: ref, Started: true},
		at:  at, closed: make(chan struct{}), moved: make(chan struct{}), cancel: cancel,
	}
	f.entries[ref.WorkflowID()] = e
	f.uploads.Go(func() { f.upload(ctx, e) })
	return e.rec
}

func (f *fakeTemporal) Redirect(_ context.Context, rec segment.Record, at segment.Location) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.entries[rec.Ref.WorkflowID()]; e != nil {
		e.at = at
		close(e.moved)
		e.moved = make(chan struct{})
	}
	return nil
}

func (f *fakeTemporal) Await(ctx context.Context, rec segment.Record) (segment.Record, error) {
	f.mu.Lock()
	e := f.entries[rec.Ref.WorkflowID()]
	f.mu.Unlock()
	if e == nil {
		return segment.Record{State: segment.None}, nil
	}
	select {
	case <-e.closed:
		f.mu.Lock()
		defer f.mu.Unlock()
		out := e.rec
		out.Started = false
		return out, nil
	case <-ctx.Done():
		return segment.Record{}, ctx.Err()
	}
}

// terminate closes a running segment as an operator would.
func (f *fakeTemporal) terminate(ref segment.Ref) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.entries[ref.WorkflowID()]
	e.cancel()
	e.rec.Reason = "terminated: somebody wanted it so"
	f.end(e, segment.Broken, nil)
}

// complete closes a running segment as its worker would.
func (f *fakeTemporal) complete(ref segment.Ref) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end(f.entries[ref.WorkflowID()], segment.Completed, nil)
}

// rewrite makes the record of a segment another one.
func (f *fakeTemporal) rewrite(ref segment.Ref, change func(*segment.Ref)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.entries[ref.WorkflowID()].rec.Ref)
}

// Unfinished and GiveUp are what package settle asks of Temporal.
func (f *fakeTemporal) Unfinished(_ context.Context, pipeline string, after change.Position) ([]segment.Record, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var records []segment.Record
	for _, e := range f.entries {
		if e.rec.Ref.Pipeline == pipeline && after.Less(e.rec.Ref.First) && e.rec.State != segment.Completed && !e.rec.GivenUp {
			records = append(records, e.rec)
		}
	}
	segment.Sort(records)
	return records, nil
}

func (f *fakeTemporal) GiveUp(_ context.Context, rec segment.Record, why string) (bool, error) {
	f.terminate(rec.Ref)
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.entries[rec.Ref.WorkflowID()]
	e.rec.GivenUp = e.rec.State == segment.Broken
	e.rec.Reason = why
	return false, nil
}

// close ends every upload and waits for it.
func (f *fakeTemporal) close() {
	f.mu.Lock()
	for _, e := range f.entries {
		e.cancel()
	}
	f.mu.Unlock()
	f.uploads.Wait()
}

// end closes a run once; f.mu is held.
func (f *fakeTemporal) end(e *entry, s segment.State, rows []row) {
	if e.rec.State != segment.Running {
		return
	}
	e.rec.State, e.rows = s, rows
	close(e.closed)
}

// upload tries until the rows have been had, like Temporal's retries.
func (f *fakeTemporal) upload(ctx context.Context, e *entry) {
	for {
		f.mu.Lock()
		held, released, moved := f.held(e.rec.Ref), f.released, e.moved
		source := f.sources[e.at.Instance]
		f.mu.Unlock()
		if !held && source != nil {
			rows, err := fetch(ctx, source, e.rec.Ref)
			if err == nil && f.store != nil {
				err = f.store(e.rec.Ref)
			}
			if err == nil {
				f.mu.Lock()
				f.end(e, segment.Completed, rows)
				f.mu.Unlock()
				return
			}
		}
		select {
		case <-released:
		case <-moved:
		case <-e.closed:
			return
		case <-ctx.Done():
			return
		}
	}
}

func fetch(ctx context.Context, s segment.Source, ref segment.Ref) ([]row, error) {
	r, err := s.Fetch(ctx, ref.Ticket())
	if err != nil {
		return nil, err
	}
	defer r.Close()
	h := segment.NewHasher()
	var rows []row
	for {
		chunk, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		for i := range chunk {
			h.Add(&chunk[i])
			rows = append(rows, row{chunk[i].Position, string(chunk[i].Raw)})
		}
	}
	if h.Sum() != ref.Digest || h.Rows() != ref.Rows {
		return nil, fmt.Errorf("segment %s: digest %s over %d rows, want %s over %d", ref.First, h.Sum(), h.Rows(), ref.Digest, ref.Rows)
	}
	return rows, nil
}

// uploaded gives the completed segments in stream order, and all their rows.
func (f *fakeTemporal) uploaded() ([]segment.Ref, []row) {
	refs := f.in(segment.Completed)
	f.mu.Lock()
	defer f.mu.Unlock()
	var rows []row
	for _, e := range f.entries {
		if e.rec.State == segment.Completed {
			rows = append(rows, e.rows...)
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return a.Position.Compare(b.Position) })
	return refs, rows
}

// running gives the open segments in stream order.
func (f *fakeTemporal) running() []segment.Ref { return f.in(segment.Running) }

// in gives the segments of a state in stream order.
func (f *fakeTemporal) in(state segment.State) []segment.Ref {
	f.mu.Lock()
	defer f.mu.Unlock()
	var refs []segment.Ref
	for _, e := range f.entries {
		if e.rec.State == state {
			refs = append(refs, e.rec.Ref)
		}
	}
	slices.SortFunc(refs, func(a, b segment.Ref) int { return a.First.Compare(b.First) })
	return refs
}
