package flight

import (
	"errors"
	"io"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment/segmenttest"
)

// BenchmarkFetch fetches 160,000 rows of 53 bytes (8.5 MB) over loopback.
func BenchmarkFetch(b *testing.B) {
	const rows, size = 160_000, 53
	m := segmenttest.NewMaker(0x1000)
	rel := segmenttest.Relation(16500)
	cs := make([]change.Change, 0, rows)
	for i := range rows {
		cs = append(cs, m.Change(change.Insert, rel, segmenttest.Raw('I', size, i)))
	}
	seg := segmenttest.Segment{Ref: segmenttest.RefOf(segmenttest.Before(0x1000), cs), Changes: cs}
	src := segmenttest.NewMemory(seg)
	src.Chunk = 10_000
	s, _ := serve(b, ServerConfig{}, src)
	client := connect(b, ClientConfig{}, s.Address())
	b.SetBytes(rows * size)
	b.ReportAllocs()
	for b.Loop() {
		r, err := client.Fetch(b.Context(), seg.Ref.Ticket())
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for {
			cs, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			n += len(cs)
		}
		if n != rows {
			b.Fatalf("%d rows", n)
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
