package replication

import (
	"testing"
	"time"
)

// script is a socket that brings so many bytes with each read, each of which
// takes no time.
type script struct{ sizes []int }

func (s *script) Read(p []byte) (int, error) {
	n := min(s.sizes[0], len(p))
	s.sizes = s.sizes[1:]
	return n, nil
}

// A stream of small messages is gathered, and nothing else is kept waiting: not
// what comes in large pieces, and not what comes after a pause.
func TestOnlyAReaderThatIsBackSoonForLittlePauses(t *testing.T) {
	for name, tc := range map[string]struct {
		sizes  []int
		away   time.Duration // from one read to the next
		pauses int
	}{
		"a stream of small messages": {[]int{150, 150, 150, 150}, soon / 10, 3},
		"large pieces":               {[]int{readBuffer, readBuffer, little}, soon / 10, 0},
		"small ones now and then":    {[]int{150, 150, 150}, soon, 0},
		"small after large":          {[]int{readBuffer, 150, 150}, soon / 10, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var clock time.Time
			pauses := 0
			a := &arrival{r: &script{tc.sizes}, now: func() time.Time { return clock }, sleep: func(d time.Duration) {
				if d != gather {
					t.Errorf("paused for %s", d)
				}
				pauses++
			}}
			for range tc.sizes {
				if _, err := a.Read(make([]byte, readBuffer)); err != nil {
					t.Fatal(err)
				}
				if a.at != clock {
					t.Errorf("arrived at %s, want %s", a.at, clock)
				}
				clock = clock.Add(tc.away)
			}
			if pauses != tc.pauses {
				t.Errorf("paused %d times, want %d", pauses, tc.pauses)
			}
		})
	}
}
