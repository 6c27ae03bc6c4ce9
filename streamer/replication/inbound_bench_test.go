package replication

import "testing"

// endless gives the same stream again and again, 64 KiB at a time.
type endless struct {
	stream []byte
	at     int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p[:min(len(p), 64<<10)], e.stream[e.at:])
	e.at = (e.at + n) % len(e.stream)
	return n, nil
}

func newEndless() *endless {
	e := &endless{}
	for range 1000 {
		e.stream = append(e.stream, dataMessage(make([]byte, 120))...)
	}
	return e
}

// BenchmarkReceive takes messages of 120 bytes as they come from the kernel.
func BenchmarkReceive(b *testing.B) {
	s := offline(newEndless())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Receive(); err != nil {
			b.Fatal(err)
		}
	}
}
