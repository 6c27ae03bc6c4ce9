package lake_test

import (
	"context"
	"iter"
	"runtime"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/lake/laketest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// simulated is a store with the objects of refs, each of which is made when it
// is read. The lake's records are in Store.
type simulated struct {
	lake.Store
	refs []segment.Ref
	at   map[string]int
	size int64
	// held is the memory in use at the end of the listing, when verify has seen
	// everything.
	held uint64
}

func (s *simulated) List(ctx context.Context, prefix, after string) iter.Seq2[lake.Info, error] {
	if prefix != "" {
		return s.Store.List(ctx, prefix, after)
	}
	return func(yield func(lake.Info, error) bool) {
		for _, ref := range s.refs {
			if key := lake.Key(ref); key > after && !yield(lake.Info{Key: key, Size: s.size}, nil) {
				return
			}
		}
		s.held = heap()
	}
}

func (s *simulated) GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	i, ok := s.at[key]
	if !ok {
		return s.Store.GetRange(ctx, key, offset, length)
	}
	body, err := laketest.Object(s.refs[i])
	if err != nil {
		return nil, err
	}
	// All are as long as the longest: a footer stands at the end.
	body = append([]byte(strings.Repeat("\x00", int(s.size)-len(body))), body...)
	return body[offset : offset+length], nil
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkVerify is verify over a million objects, a thousand a day. Most of
// its time is the simulation's, which makes an object for each footer that is
// read.
func BenchmarkVerify(b *testing.B) {
	const objects = 1_000_000
	for b.Loop() {
		b.StopTimer()
		store := &simulated{Store: lake.NewMemory(), refs: laketest.Chain("memory", objects, 1000), at: map[string]int{}}
		l := lake.New("memory", store)
		if err := laketest.Fill(b.Context(), l, store.refs[:1]); err != nil {
			b.Fatal(err)
		}
		for i, ref := range store.refs {
			store.at[lake.Key(ref)] = i
			if i < 10 || i == objects-1 {
				body, err := laketest.Object(ref)
				if err != nil {
					b.Fatal(err)
				}
				store.size = max(store.size, int64(len(body))+64)
			}
		}
		before := heap()
		b.StartTimer()
		report, err := lake.Verify(b.Context(), l, lake.Options{})
		b.StopTimer()
		if err != nil || !report.OK() || report.Objects != objects {
			b.Fatalf("%d objects, %v, %+v", report.Objects, err, report.Findings[:min(3, len(report.Findings))])
		}
		b.ReportMetric(float64(store.held-before)/objects, "held-bytes/object")
		b.StartTimer()
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s")
}
