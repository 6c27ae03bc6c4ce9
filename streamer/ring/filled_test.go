package ring

import "testing"

func TestFilledIsToldWithTheChangeThatFillsASegment(t *testing.T) {
	for _, tt := range []struct {
		name   string
		config Config
		raw    int
		want   int // changes
	}{
		{"by rows", Config{SegmentRows: 5}, 10, 5},
		{"by bytes", Config{SegmentBytes: 95}, 10, 10},
		{"by bytes exactly", Config{SegmentBytes: 100}, 10, 10},
		{"by one change alone", Config{SegmentBytes: 100}, 1000, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := New(tt.config, Start{})
			for i := 1; i <= tt.want; i++ {
				if r.Filled() {
					t.Fatalf("filled after %d changes, want %d", i-1, tt.want)
				}
				c := numbered(i, tt.raw)
				if _, err := r.Add(&c); err != nil {
					t.Fatal(err)
				}
				r.Mark(c.Position.LSN + 5)
			}
			if !r.Filled() {
				t.Fatalf("not filled after %d changes", tt.want)
			}
			v, ok := r.Propose(0, false)
			if !ok {
				t.Fatal("filled, and no segment is proposed")
			}
			if _, err := r.Cut(v); err != nil {
				t.Fatal(err)
			}
			if r.Filled() {
				t.Error("still filled after the cut")
			}
		})
	}
}
