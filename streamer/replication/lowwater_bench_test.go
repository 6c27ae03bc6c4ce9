package replication

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// floodOf makes this program a server that writes to the address in the variable,
// as a walsender does: each message by itself.
const floodOf = "TIDEMARK_TEST_FLOOD"

const floodMessage = 200 // bytes

// writeFlood writes messages at an even pace, for two seconds.
func writeFlood(to string, perSecond int) error {
	conn, err := net.Dial("tcp", to)
	if err != nil {
		return err
	}
	defer conn.Close()
	message := make([]byte, floodMessage)
	began := time.Now()
	for i := range 2 * perSecond {
		for time.Since(began) < time.Duration(i)*time.Second/time.Duration(perSecond) {
		}
		if _, err := conn.Write(message); err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkFlood reads messages that a process beside it writes one by one, with
// a reader that is woken for each and with a calm one. The CPU time is the
// reader's alone, wakes are its voluntary context switches.
func BenchmarkFlood(b *testing.B) {
	for _, perSecond := range []int{30_000, 100_000} {
		for _, name := range []string{"woken", "calm"} {
			b.Run(fmt.Sprintf("%d/%s", perSecond, name), func(b *testing.B) {
				var cpu time.Duration
				var wakes int64
				messages := 0
				for b.Loop() {
					n, used, woken := readFlood(b, perSecond, name == "calm")
					messages, cpu, wakes = messages+n, cpu+used, wakes+woken
				}
				b.ReportMetric(float64(cpu)/float64(messages), "cpu-ns/message")
				b.ReportMetric(float64(wakes)/float64(messages), "wakes/message")
				b.ReportMetric(0, "ns/op") // is the writer's
			})
		}
	}
}

func readFlood(b *testing.B, perSecond int, withCalm bool) (messages int, cpu time.Duration, wakes int64) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	writer := exec.CommandContext(b.Context(), os.Args[0])
	writer.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", floodOf, perSecond, l.Addr()))
	writer.Stderr = os.Stderr
	if err := writer.Start(); err != nil {
		b.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	if withCalm {
		if conn, err = calmly(func(context.Context, string, string) (net.Conn, error) { return conn, nil })(b.Context(), "", ""); err != nil {
			b.Fatal(err)
		}
	}
	var before, after syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
		b.Fatal(err)
	}
	from, message := bufio.NewReaderSize(&arrival{r: conn}, readBuffer), make([]byte, floodMessage)
	for {
		if _, err := io.ReadFull(from, message); err == io.EOF {
			break
		} else if err != nil {
			b.Fatal(err)
		}
		messages++
	}
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &after); err != nil {
		b.Fatal(err)
	}
	if err := writer.Wait(); err != nil {
		b.Fatal(err)
	}
	used := func(u syscall.Rusage) time.Duration { return time.Duration(u.Utime.Nano() + u.Stime.Nano()) }
	return messages, used(after) - used(before), int64(after.Nvcsw - before.Nvcsw)
}
