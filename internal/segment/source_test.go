package segment_test

import (
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/leaktest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/internal/segment/segmenttest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestSourceInMemoryKeepsTheContract(t *testing.T) {
	segmenttest.Run(t, func(t *testing.T, segs []segmenttest.Segment) segment.Source {
		m := segmenttest.NewMemory(segs...)
		t.Cleanup(func() {
			if n := m.Open(); n != 0 {
				t.Errorf("%d readers were left open", n)
			}
		})
		return m
	})
}
