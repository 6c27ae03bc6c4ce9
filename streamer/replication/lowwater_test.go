package replication

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// calmPair is a calm connection and its other end.
func calmPair(t *testing.T) (*calm, *net.TCPConn) {
	t.Helper()
	ours, theirs := tcpPair(t, calmly(new(net.Dialer).DialContext))
	t.Cleanup(func() {
		_ = ours.Close()
		_ = theirs.Close()
	})
	return ours.(*calm), theirs
}

// flood makes a connection's reader one of a flood.
func flood(t *testing.T, c *calm) {
	t.Helper()
	if err := c.wakeAt(lowWater); err != nil {
		t.Skipf("no low-water marks here: %v", err)
	}
	c.flooded = true
}

// outcome is what a Read has returned.
type outcome struct {
	data []byte
	err  error
}

// readOne reads once, elsewhere.
func readOne(c *calm) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		p := make([]byte, 1<<10)
		n, err := c.Read(p)
		done <- outcome{p[:n], err}
	}()
	return done
}

func await(t *testing.T, done <-chan outcome) outcome {
	t.Helper()
	select {
	case o := <-done:
		return o
	case <-time.After(30 * time.Second):
		t.Fatal("the read does not return")
		return outcome{}
	}
}

// Whatever the reader's mode is, and however often it changes, every byte comes
// in order: single messages, messages in a row and pauses take turns.
func TestEveryByteOfAFloodComesInOrder(t *testing.T) {
	c, theirs := calmPair(t)
	var sent bytes.Buffer
	message := make([]byte, 200)
	for i := range 60_000 {
		message[i%len(message)]++
		sent.Write(message)
	}
	want := bytes.Clone(sent.Bytes())
	go func() {
		defer theirs.Close()
		for i := 0; sent.Len() > 0; i++ {
			if _, err := theirs.Write(sent.Next(len(message))); err != nil {
				return
			}
			if i%9973 == 0 {
				time.Sleep(3 * lowWait) // the pause that ends a flood
			}
		}
	}()
	var got bytes.Buffer
	floods, was := 0, false
	p := make([]byte, 128<<10)
	for {
		n, err := c.Read(p)
		got.Write(p[:n])
		if c.flooded && !was {
			floods++
		}
		was = c.flooded
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d floods were noticed", floods)
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%d bytes came of %d, or others", got.Len(), len(want))
	}
}

func TestALastMessageBelowTheMarkComesAllTheSame(t *testing.T) {
	c, theirs := calmPair(t)
	flood(t, c)
	done := readOne(c)
	if _, err := theirs.Write([]byte("last")); err != nil {
		t.Fatal(err)
	}
	if o := await(t, done); string(o.data) != "last" || o.err != nil {
		t.Errorf("read %q, %v", o.data, o.err)
	}
}

func TestTheFirstMessageAfterAFloodWakesTheReader(t *testing.T) {
	c, theirs := calmPair(t)
	flood(t, c)
	done := readOne(c)
	// Nothing comes, so the mark is taken back, and the reader sleeps for good.
	for waiting := time.Now(); lowWaterOf(t, c) != 1; time.Sleep(time.Millisecond) {
		if time.Since(waiting) > 30*time.Second {
			t.Fatal("the mark is not taken back")
		}
	}
	if _, err := theirs.Write([]byte("first")); err != nil {
		t.Fatal(err)
	}
	if o := await(t, done); string(o.data) != "first" || o.err != nil {
		t.Errorf("read %q, %v", o.data, o.err)
	}
}

func TestADeadlineFromOutsideEndsAReadOfAFlood(t *testing.T) {
	for name, set := range map[string]func(*calm) error{
		"while it waits, all":   func(c *calm) error { return c.SetDeadline(time.Now()) },
		"while it waits, reads": func(c *calm) error { return c.SetReadDeadline(time.Now()) },
		"a little later":        func(c *calm) error { return c.SetReadDeadline(time.Now().Add(5 * lowWait)) },
	} {
		t.Run(name, func(t *testing.T) {
			c, theirs := calmPair(t)
			flood(t, c)
			done := readOne(c)
			if err := set(c); err != nil {
				t.Fatal(err)
			}
			if o := await(t, done); !errors.Is(o.err, os.ErrDeadlineExceeded) {
				t.Errorf("read %q, %v", o.data, o.err)
			}
			if err := c.SetReadDeadline(time.Time{}); err != nil {
				t.Fatal(err)
			}
			done = readOne(c)
			if _, err := theirs.Write([]byte("more")); err != nil {
				t.Fatal(err)
			}
			if o := await(t, done); string(o.data) != "more" || o.err != nil {
				t.Errorf("without a deadline: read %q, %v", o.data, o.err)
			}
		})
	}
}

// However much there is to read.
func TestADeadlineThatHasPassedEndsTheReadsOfAFlood(t *testing.T) {
	c, theirs := calmPair(t)
	flood(t, c)
	if _, err := theirs.Write(make([]byte, 2*lowWater)); err != nil {
		t.Fatal(err)
	}
	if o := await(t, readOne(c)); len(o.data) == 0 || o.err != nil {
		t.Fatalf("read %d bytes, %v", len(o.data), o.err)
	}
	if err := c.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if o := await(t, readOne(c)); len(o.data) > 0 || !errors.Is(o.err, os.ErrDeadlineExceeded) {
		t.Errorf("read %d bytes, %v", len(o.data), o.err)
	}
}

func TestTheEndOfTheConnectionEndsAFlood(t *testing.T) {
	t.Run("closed by the server", func(t *testing.T) {
		c, theirs := calmPair(t)
		flood(t, c)
		if _, err := theirs.Write([]byte("last")); err != nil {
			t.Fatal(err)
		}
		if err := theirs.Close(); err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(c)
		if string(all) != "last" || err != nil {
			t.Errorf("read %q, %v", all, err)
		}
	})
	t.Run("reset", func(t *testing.T) {
		c, theirs := calmPair(t)
		flood(t, c)
		done := readOne(c)
		if err := errors.Join(theirs.SetLinger(0), theirs.Close()); err != nil {
			t.Fatal(err)
		}
		if o := await(t, done); o.err == nil {
			t.Errorf("read %q without an error", o.data)
		}
	})
	t.Run("closed by us", func(t *testing.T) {
		c, _ := calmPair(t)
		flood(t, c)
		done := readOne(c)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if o := await(t, done); !errors.Is(o.err, net.ErrClosed) {
			t.Errorf("read %q, %v", o.data, o.err)
		}
	})
}

func TestOnlyTCPIsMadeCalm(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	conn, err := calmly(func(context.Context, string, string) (net.Conn, error) { return ours, nil })(t.Context(), "unix", "")
	if err != nil || conn != ours {
		t.Errorf("got a %T, %v", conn, err)
	}
}
