package streamer

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/lake/laketest"
	"github.com/tidemark-cdc/tidemark/internal/pgtest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// stored puts an object that speaks of ref into the lake.
func (w *world) stored(ref segment.Ref, put func(context.Context, segment.Ref, []byte) (lake.Object, error)) {
	w.t.Helper()
	body, err := laketest.Object(ref)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := put(w.t.Context(), ref, body); err != nil {
		w.t.Fatal(err)
	}
}

// forget is Temporal's retention.
func (w *world) forget(ref segment.Ref) {
	w.temporal.mu.Lock()
	defer w.temporal.mu.Unlock()
	e := w.temporal.entries[ref.WorkflowID()]
	e.cancel()
	delete(w.temporal.entries, ref.WorkflowID())
}

func TestWhatTemporalHasForgottenIsFoundInTheLake(t *testing.T) {
	for name, quarantined := range map[string]bool{"an object": false, "a quarantined one": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pgtest.Options{})
			ref := w.leaveRunning(func() { w.insert(8) })
			put := w.lake.PutSegment
			if quarantined {
				put = w.lake.PutQuarantine
			}
			w.stored(ref, put)
			w.forget(ref)
			w.temporal.hold(func(segment.Ref) bool { return false })
			// More rows than the ring holds, and cut otherwise.
			w.start(func(c *Config) { c.Ring.SegmentRows, c.Ring.MaxChanges = 3, 4 })
			w.insert(2)
			w.caughtUp()
			refs, _ := w.temporal.uploaded()
			if len(refs) != 1 || refs[0].Follows != ref.Last || refs[0].Rows != 2 {
				t.Errorf("uploaded %+v, want the two rows after %s alone", refs, ref.Last)
			}
		})
	}
}

// vanishing is a Temporal whose record of a segment has been deleted between
// two calls, after its object was stored.
type vanishing struct {
	*fakeTemporal
	store func(segment.Ref)
}

func (v *vanishing) Start(ctx context.Context, ref segment.Ref, at segment.Location) (segment.Record, error) {
	if v.store != nil {
		v.store(ref)
		v.store = nil
		return segment.Record{State: segment.None}, nil
	}
	return v.fakeTemporal.Start(ctx, ref, at)
}

func TestARecordThatVanishesMayHaveLeftAnObject(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	w.insert(4)
	w.tracker = &vanishing{w.temporal, func(ref segment.Ref) { w.stored(ref, w.lake.PutSegment) }}
	w.start()
	w.caughtUp()
	if refs, _ := w.temporal.uploaded(); len(refs) != 0 {
		t.Errorf("uploaded once more: %+v", refs)
	}
}

func TestAnObjectThatDoesNotFitIsAStop(t *testing.T) {
	tests := map[string]struct {
		object func(w *world, ref segment.Ref)
		want   string
	}{
		"across the segment's first position": {
			object: func(w *world, ref segment.Ref) {
				ref.First.LSN--
				w.stored(ref, w.lake.PutSegment)
			},
			want: "lies across position",
		},
		"of another chain": {
			object: func(w *world, ref segment.Ref) {
				ref.Follows.LSN -= 8
				w.stored(ref, w.lake.PutSegment)
			},
			want: "here the segment would follow",
		},
		"of other rows": {
			object: func(w *world, ref segment.Ref) {
				ref.Digest++
				w.stored(ref, w.lake.PutSegment)
			},
			want: "has the digest",
		},
		"that ends where no change is": {
			object: func(w *world, ref segment.Ref) {
				ref.Last.Ordinal++
				w.stored(ref, w.lake.PutSegment)
			},
			want: "has no change at the recorded last position",
		},
		"beyond the server's WAL": {
			object: func(w *world, ref segment.Ref) {
				ref.Last.LSN += 1 << 40
				w.stored(ref, w.lake.PutSegment)
			},
			want: "WAL ends at",
		},
		"that is no Parquet file": {
			object: func(w *world, ref segment.Ref) {
				if _, err := w.store.Put(w.t.Context(), lake.Key(ref), []byte("half of an upload by hand"), lake.Condition{}); err != nil {
					w.t.Fatal(err)
				}
			},
			want: "not a Parquet file",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pgtest.Options{})
			ref := w.leaveRunning(func() { w.insert(5) })
			w.forget(ref)
			test.object(w, ref)
			w.temporal.hold(func(segment.Ref) bool { return false })
			s := w.start()
			w.insert(1) // so that the stream passes every boundary
			err := s.ended()
			var stopped *StopError
			if !errors.As(err, &stopped) || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want a stop that says %q", err, test.want)
			}
			if refs, _ := w.temporal.uploaded(); len(refs) != 0 {
				t.Errorf("uploaded %+v", refs)
			}
		})
	}
}
