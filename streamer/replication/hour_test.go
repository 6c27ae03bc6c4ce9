package replication

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The ring is full for an hour: nobody calls Receive. The server, which ends a
// connection that is silent for wal_sender_timeout, hears of it all the time,
// and never that more is safe than is. The hour is simulated.
func TestAnHourWithAFullRingDoesNotCostTheConnection(t *testing.T) {
	for _, timeout := range []time.Duration{time.Second, time.Minute} {
		t.Run(fmt.Sprint("wal_sender_timeout ", timeout), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				var probes atomic.Int64
				s := newSession(Config{Slot: "s", Publications: []string{"p"}, Probe: func(context.Context) error {
					probes.Add(1)
					return nil
				}}, discard())
				s.confirmed, s.timeout = 100, timeout
				s.stream(ours, s.frontend(ours, ours))
				defer func() {
					_ = theirs.Close()
					_ = s.Close(context.Background()) // nobody is there to hear its last report
				}()
				s.SetAck(900) // beyond what came on this connection

				begin, last, longest := time.Now(), time.Now(), time.Duration(0)
				update := make([]byte, 1+4+statusLen)
				for time.Since(begin) < time.Hour {
					_ = theirs.SetReadDeadline(last.Add(timeout)) // a pipe has deadlines
					if _, err := io.ReadFull(theirs, update); err != nil {
						t.Fatalf("after %s the server has heard nothing for %s and ends the connection: %v", time.Since(begin), time.Since(last), err)
					}
					longest, last = max(longest, time.Since(last)), time.Now()
					if flushed := binary.BigEndian.Uint64(update[14:]); flushed != 100 {
						t.Fatalf("%d was reported, and nothing was received", flushed)
					}
				}
				if longest > timeout/3 {
					t.Errorf("the server has heard nothing for %s, with a timeout of %s", longest, timeout)
				}
				if probes.Load() == 0 {
					t.Error("the server was never asked whether it is shutting down: its own requests are not read meanwhile")
				}
			})
		})
	}
}
