package replication

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// fakeStream is a session whose server is the test, at the other end of the
// returned connection.
func fakeStream(t *testing.T, cfg Config, timeout time.Duration) (*Session, *net.TCPConn) {
	t.Helper()
	ours, theirs := tcpPair(t, new(net.Dialer).DialContext)
	cfg.Slot, cfg.Publications = "s", []string{"p"}
	s := newSession(cfg, discard())
	s.confirmed, s.timeout = 100, timeout
	s.stream(ours, s.frontend(ours, ours))
	t.Cleanup(func() {
		_ = theirs.Close()
		_ = s.Close(context.Background())
	})
	return s, theirs
}

// tcpPair is a connection that dial has made, and its other end.
func tcpPair(t *testing.T, dial func(ctx context.Context, network, address string) (net.Conn, error)) (ours net.Conn, theirs *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if ours, err = dial(t.Context(), "tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return ours, other.(*net.TCPConn)
}

func keepaliveMessage(end change.LSN, reply bool) []byte {
	b := binary.BigEndian.AppendUint64([]byte{'k'}, uint64(end))
	b = append(b, make([]byte, 9)...)
	if reply {
		b[17] = 1
	}
	out, _ := (&pgproto3.CopyData{Data: b}).Encode(nil)
	return out
}

func TestPinnedSettingsReplaceEverySpelling(t *testing.T) {
	pc, err := Config{ConnString: "postgres://h/d?datestyle=German&TIMEZONE=Asia/Tokyo&Replication=true&APPLICATION_NAME=x", Slot: "s", Pipeline: "p"}.streaming(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := sessionSettings()
	want["replication"], want["application_name"] = "database", "tidemark/p"
	if !reflect.DeepEqual(pc.RuntimeParams, want) {
		t.Errorf("got  %v\nwant %v", pc.RuntimeParams, want)
	}
}

func TestStatusUpdateOnTheWire(t *testing.T) {
	at := time.Date(2000, 1, 1, 0, 0, 1, 0, time.UTC)
	got := hex.EncodeToString(encodeStatus(Status{Written: 0x1122334455667788, Flushed: 0x0102030405060708}, at))
	want := "64" + "00000026" + "72" + "1122334455667788" + "0102030405060708" + "0102030405060708" + "00000000000f4240" + "00"
	if got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
}

// A server that is shutting down asks again as soon as it is answered.
func TestServerThatAsksAndAsksIsAnsweredTenTimesASecond(t *testing.T) {
	t.Parallel()
	var probes atomic.Int64
	cfg := Config{ShutdownGrace: 500 * time.Millisecond, Probe: func(context.Context) error {
		probes.Add(1)
		return &pgconn.PgError{Code: "57P03", Message: "the database system is shutting down"}
	}}
	s, server := fakeStream(t, cfg, 0)
	r := receiveAll(t, s, false)
	begin, answers := time.Now(), 0
	one := make([]byte, 1+4+statusLen)
	for {
		if _, err := server.Write(keepaliveMessage(500, true)); err != nil {
			break
		}
		if _, err := io.ReadFull(server, one); err != nil {
			break
		}
		answers++
		if flushed := binary.BigEndian.Uint64(one[14:]); flushed != 100 {
			t.Fatalf("%d was reported, and nothing is acknowledged", flushed)
		}
	}
	took := time.Since(begin)
	if answers > int(took/repeatEvery)+1 {
		t.Errorf("%d answers in %v", answers, took)
	}
	if err := r.ended(t); !errors.Is(err, ErrServerShutdown) || probes.Load() != 1 {
		t.Errorf("after %d probes: %v", probes.Load(), err)
	}
}

func TestFloodOfAcksIsCoalesced(t *testing.T) {
	t.Parallel()
	s, server := fakeStream(t, Config{}, 0)
	stop := make(chan struct{})
	flooded := make(chan struct{})
	go func() {
		defer close(flooded)
		for lsn := change.LSN(101); ; lsn++ {
			s.NoteEnd(lsn)
			s.SetAck(lsn)
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	defer func() { close(stop); <-flooded }()
	begin := time.Now()
	one := make([]byte, 1+4+statusLen)
	const n = 10
	last := uint64(0)
	for range n {
		if _, err := io.ReadFull(server, one); err != nil {
			t.Fatal(err)
		}
		flushed := binary.BigEndian.Uint64(one[14:])
		if flushed <= last {
			t.Fatalf("%d was reported after %d", flushed, last)
		}
		last = flushed
	}
	if took := time.Since(begin); took < (n-1)*coalesce || took > n*coalesce*40 {
		t.Errorf("%d reports in %v", n, took)
	}
}

func TestCloseInterruptsABlockedReport(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe() // its writes wait for the reader
	defer theirs.Close()
	s := newSession(Config{Slot: "s"}, discard())
	s.timeout = 40 * time.Millisecond
	s.stream(ours, s.frontend(ours, ours))
	throughout(t, 200*time.Millisecond, "the report is blocked", func() bool { return s.Err() == nil })
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if err := s.Close(ctx); err == nil {
		t.Error("the final status cannot have arrived, and Close does not say so")
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("Close took %v", took)
	}
}

func TestReasonOfTheServerIsPreferredToABrokenWrite(t *testing.T) {
	t.Parallel()
	s, server := fakeStream(t, Config{}, 0)
	last, _ := (&pgproto3.ErrorResponse{Severity: "FATAL", Code: "57P01", Message: "terminating"}).Encode(nil)
	if _, err := server.Write(last); err != nil {
		t.Fatal(err)
	}
	s.fail(errors.New("broken pipe")) // as the sender would
	_, err := s.Receive()
	if !errors.Is(err, ErrServerShutdown) {
		t.Fatalf("got %v", err)
	}
}

func TestReceiveEndsAfterABrokenWriteWithoutAWord(t *testing.T) {
	t.Parallel()
	s, _ := fakeStream(t, Config{}, 0)
	r := receiveAll(t, s, false)
	s.fail(errors.New("broken pipe"))
	if err := r.ended(t); err == nil || !strings.Contains(err.Error(), "broken pipe") || !Transient(err) {
		t.Fatalf("got %v", err)
	}
}

func TestMessagesThatAreNone(t *testing.T) {
	t.Parallel()
	for name, payload := range map[string]string{
		"empty": "", "unknown": "zzzz", "short data": "w123", "short keepalive": "k123", "long keepalive": "k" + strings.Repeat("x", 18),
	} {
		s, server := fakeStream(t, Config{}, 0)
		b, _ := (&pgproto3.CopyData{Data: []byte(payload)}).Encode(nil)
		if _, err := server.Write(b); err != nil {
			t.Fatal(err)
		}
		if m, err := s.Receive(); err == nil {
			t.Errorf("%s: got %+v", name, m)
		}
	}
}

func TestReceiveGivesDataAndKeepalives(t *testing.T) {
	t.Parallel()
	s, server := fakeStream(t, Config{}, 0)
	data := binary.BigEndian.AppendUint64([]byte{'w'}, 7)
	data = binary.BigEndian.AppendUint64(data, 8)
	data = append(append(data, make([]byte, 8)...), "payload"...)
	b, _ := (&pgproto3.CopyData{Data: data}).Encode(nil)
	b = append(b, keepaliveMessage(300, true)...)
	done, _ := (&pgproto3.CopyDone{}).Encode(nil)
	if _, err := server.Write(append(b, done...)); err != nil {
		t.Fatal(err)
	}
	m, err := s.Receive()
	if err != nil || m.Keepalive || m.WALStart != 7 || m.WALEnd != 8 || string(m.Data) != "payload" {
		t.Errorf("got %+v, %v", m, err)
	}
	m, err = s.Receive()
	if err != nil || !m.Keepalive || !m.ReplyRequested || m.WALEnd != 300 || m.Data != nil {
		t.Errorf("got %+v, %v", m, err)
	}
	if _, err = s.Receive(); !errors.Is(err, ErrServerShutdown) {
		t.Errorf("after CopyDone: %v", err)
	}
}

func TestDataSaysWhenItArrived(t *testing.T) {
	t.Parallel()
	s, server := fakeStream(t, Config{}, 0)
	var both []byte
	for range 2 {
		both, _ = (&pgproto3.CopyData{Data: append([]byte{dataType}, make([]byte, dataLen)...)}).Encode(both)
	}
	before := time.Now()
	if _, err := server.Write(both); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		m, err := s.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if m.Arrived.Before(before) || m.Arrived.After(time.Now()) {
			t.Errorf("arrived at %v, was sent after %v and received before %v", m.Arrived, before, time.Now())
		}
	}
}
