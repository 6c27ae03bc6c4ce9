package replication

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// pieces gives a stream out in pieces of chosen sizes, and counts them.
type pieces struct {
	stream []byte
	size   func() int
	reads  int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.stream) == 0 {
		return 0, io.EOF
	}
	p.reads++
	n := copy(b, p.stream[:min(len(p.stream), max(1, p.size()))])
	p.stream = p.stream[n:]
	return n, nil
}

// offline is a session that reads from r and has nobody to report to.
func offline(r io.Reader) *Session {
	s := newSession(Config{}, discard())
	s.front = s.frontend(r, io.Discard)
	s.feedback = NewFeedback(0, 0, time.Now())
	return s
}

func dataMessage(payload []byte) []byte {
	b := append(make([]byte, 0, dataLen+len(payload)), dataType)
	b = binary.BigEndian.AppendUint64(b, 0x100)
	b = binary.BigEndian.AppendUint64(b, 0x100)
	b = append(append(b, make([]byte, 8)...), payload...)
	out, _ := (&pgproto3.CopyData{Data: b}).Encode(nil)
	return out
}

// However the network cuts the stream, the messages are the ones that were sent,
// and More is true just where nothing has to be read for the next one.
func TestMessagesAreTheSameHoweverTheStreamIsCut(t *testing.T) {
	notice, _ := (&pgproto3.NoticeResponse{Severity: "NOTICE", SeverityUnlocalized: "NOTICE", Message: "n"}).Encode(nil)
	rnd := rand.New(rand.NewPCG(1, 2))
	var stream []byte
	var want [][]byte
	for i := range 400 {
		size := rnd.IntN(300)
		switch i % 100 {
		case 30:
			size = readBuffer - 10 - dataLen // within the buffer together with its header, just
		case 60:
			size = readBuffer
		case 90:
			size = 5 * readBuffer
		}
		payload := bytes.Repeat([]byte{byte(i)}, size)
		want = append(want, payload)
		stream = append(stream, dataMessage(payload)...)
		if i%7 == 1 {
			stream = append(stream, notice...)
		}
	}
	for name, size := range map[string]func() int{
		"one by one":  func() int { return 1 },
		"in pieces":   func() int { return 1 + rnd.IntN(700) },
		"much":        func() int { return 1 + rnd.IntN(100_000) },
		"all at once": func() int { return len(stream) },
	} {
		t.Run(name, func(t *testing.T) {
			from := &pieces{stream: stream, size: size}
			s := offline(from)
			more, mores := false, 0
			for i, payload := range want {
				before := from.reads
				m, err := s.Receive()
				if err != nil {
					t.Fatalf("message %d: %v", i, err)
				}
				if !bytes.Equal(m.Data, payload) {
					t.Fatalf("message %d has %d bytes and should have %d, or others", i, len(m.Data), len(payload))
				}
				if more && from.reads != before {
					t.Errorf("message %d was to be had without reading, and took %d reads", i, from.reads-before)
				}
				if more = m.More; more {
					mores++
				}
			}
			t.Logf("More %d times of %d", mores, len(want))
			if name == "all at once" && mores < len(want)/2 {
				t.Errorf("More only %d times of %d", mores, len(want))
			}
			if _, _, err := s.inbound.data(); err == nil {
				t.Error("there is more than was sent")
			}
		})
	}
}

// A row can have hundreds of megabytes, which nothing may keep once it is taken.
func TestTheMemoryOfALargeMessageIsLetGo(t *testing.T) {
	const large = 64 << 20
	stream := append(dataMessage(make([]byte, large)), dataMessage([]byte("small"))...)
	from := &pieces{stream: stream, size: func() int { return 1 << 20 }}
	s := offline(from)
	stream = nil
	for _, size := range []int{large, len("small")} {
		if m, err := s.Receive(); err != nil || len(m.Data) != size {
			t.Fatalf("%d bytes, want %d; %v", len(m.Data), size, err)
		}
	}
	from.stream = nil
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > large {
		t.Errorf("the heap has %d MiB", m.HeapAlloc>>20)
	}
	runtime.KeepAlive(s)
}

func TestAStreamThatEndsWithinAMessage(t *testing.T) {
	whole := dataMessage([]byte("a row"))
	for n := range len(whole) {
		s := offline(&pieces{stream: whole[:n], size: func() int { return n }})
		if _, _, err := s.receive(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("after %d of %d bytes: %v", n, len(whole), err)
		}
	}
}

func TestALengthThatCannotBeIsRefused(t *testing.T) {
	for _, length := range []uint32{0, 3, 0xFFFFFFFF, 0x80000000} {
		stream := binary.BigEndian.AppendUint32([]byte{copyData}, length)
		stream = append(stream, make([]byte, 100)...)
		s := offline(&pieces{stream: stream, size: func() int { return len(stream) }})
		if _, _, err := s.receive(); err == nil || !strings.Contains(err.Error(), "invalid message length") {
			t.Errorf("length %d: %v", length, err)
		}
	}
}

// A message that is none is told of wherever it stands: also behind others that
// came with it.
func TestAWrongMessageBehindOthersIsToldOf(t *testing.T) {
	wrong, _ := (&pgproto3.CopyData{Data: []byte("x")}).Encode(nil)
	stream := append(append(dataMessage([]byte("first")), wrong...), dataMessage([]byte("third"))...)
	s := offline(&pieces{stream: stream, size: func() int { return len(stream) }})
	m, err := s.Receive()
	if err != nil || string(m.Data) != "first" || !m.More {
		t.Fatalf("%+v, %v", m, err)
	}
	_, ok := s.atHand()
	if _, _, err := s.receive(); ok || err == nil || !strings.Contains(err.Error(), `type 'x'`) {
		t.Errorf("%t, %v", ok, err)
	}
}

// Once the session has ended nothing more is given out, whatever is in memory.
func TestAClosedSessionGivesNothingMore(t *testing.T) {
	stream := append(dataMessage([]byte("first")), dataMessage([]byte("second"))...)
	s := offline(&pieces{stream: stream, size: func() int { return len(stream) }})
	if m, err := s.Receive(); err != nil || !m.More {
		t.Fatalf("%+v, %v", m, err)
	}
	s.failure = ErrClosed
	close(s.failed)
	if _, ok := s.atHand(); ok {
		t.Error("there was a message")
	}
}
