package streamer

import (
	"encoding/binary"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/pgoutput"
	"github.com/tidemark-cdc/tidemark/streamer/ring"
)

// stream is a session as the server would send it: one table of five columns,
// transactions of a thousand inserts.
type stream struct {
	messages [][]byte
	rows     int
}

const (
	benchTransactions = 20
	benchRows         = 1000
	// benchRead is how many messages come with one of Postgres' writes of 8 KiB.
	benchRead = 64
)

func newStream() stream {
	var s stream
	relation := append([]byte{'R'}, be32(nil, 16400)...)
	relation = append(relation, "bench\x00rows\x00d\x00\x05"...)
	for i, c := range []string{"id", "customer", "amount", "note", "at"} {
		relation = append(relation, b2i(i == 0))
		relation = append(append(relation, c...), 0)
		relation = be32(be32(relation, []uint32{20, 23, 1700, 25, 1184}[i]), 0xFFFFFFFF)
	}
	for t := range benchTransactions {
		lsn := uint64(1000 + t*100_000)
		begin := be32(be64(be64([]byte{'B'}, lsn+50_000), uint64(t)), uint32(700+t))
		s.messages = append(s.messages, begin)
		if t == 0 {
			s.messages = append(s.messages, relation)
		}
		for r := range benchRows {
			id := t*benchRows + r
			m := append(be32([]byte{'I'}, 16400), 'N', 0, 5)
			for _, text := range []string{fmt.Sprint(1_000_000 + id), fmt.Sprint(id % 10007), fmt.Sprintf("%.2f", float64(id)*0.01),
				"9d5ed678fe57bcca610140957afab571c4ca4238a0b923820dcc509a6f75849b", "2026-11-30 06:47:18.123456+00"} {
				m = append(be32(append(m, 't'), uint32(len(text))), text...)
			}
			s.messages = append(s.messages, m)
			s.rows++
		}
		commit := be64(be64(be64([]byte{'C', 0}, lsn+50_000), lsn+50_100), uint64(t))
		s.messages = append(s.messages, commit)
	}
	return s
}

func be32(b []byte, v uint32) []byte { return binary.BigEndian.AppendUint32(b, v) }
func be64(b []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(b, v) }
func b2i(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// cpuTime is the process' CPU time, collections included: on a machine that does
// other things beside, it says more than the time on the wall.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func report(b *testing.B, began time.Duration, rows int) {
	b.ReportMetric(float64(cpuTime(b)-began)/float64(rows), "cpu-ns/change")
}

// BenchmarkOrderedPath is the serial part of the streamer without the network:
// from a message to a change in the ring, and out of it again by segments.
func BenchmarkOrderedPath(b *testing.B) {
	s := newStream()
	b.ReportAllocs()
	rows, began := 0, cpuTime(b)
	for b.Loop() {
		framer := pgoutput.NewFramer(pgoutput.FramerConfig{TimelineOf: func(change.LSN) change.Timeline { return 1 }})
		buf := newBuffer(ring.Config{}, ring.Start{})
		in := intake{buffer: buf}
		var arrived change.Time
		for i, m := range s.messages {
			if i%benchRead == 0 {
				in.rest()
				arrived = change.TimeOf(time.Now())
			}
			frame, err := framer.Frame(1, arrived, m)
			if err != nil {
				b.Fatal(err)
			}
			switch frame.Kind {
			case pgoutput.Changes:
				for i := range frame.Changes {
					if err := in.add(b.Context(), nil, nil, &frame.Changes[i]); err != nil {
						b.Fatal(err)
					}
				}
			case pgoutput.Commit:
				in.mark(frame.CommitEnd)
				select {
				case <-buf.ready:
				default:
					continue
				}
				in.rest()
				if v, ok, _ := buf.propose(0, false); ok {
					buf.locked(func(r *ring.Ring) {
						id, err := r.Cut(v)
						if err != nil {
							b.Fatal(err)
						}
						r.Finish(id)
					})
				}
			}
		}
		in.rest()
		rows += s.rows
	}
	report(b, began, rows)
}

// BenchmarkOrderedPathByHand is what a consumer without Tidemark does at the
// same place: decode each message with pglogrepl into a map.
func BenchmarkOrderedPathByHand(b *testing.B) {
	s := newStream()
	b.ReportAllocs()
	rows, began := 0, cpuTime(b)
	for b.Loop() {
		relations := map[uint32]*pglogrepl.RelationMessage{}
		var batch []map[string]any
		for _, m := range s.messages {
			parsed, err := pglogrepl.Parse(m)
			if err != nil {
				b.Fatal(err)
			}
			switch parsed := parsed.(type) {
			case *pglogrepl.RelationMessage:
				relations[parsed.RelationID] = parsed
			case *pglogrepl.InsertMessage:
				rel := relations[parsed.RelationID]
				row := make(map[string]any, len(parsed.Tuple.Columns))
				for i, c := range parsed.Tuple.Columns {
					row[rel.Columns[i].Name] = string(c.Data)
				}
				if batch = append(batch, row); len(batch) == 1000 {
					batch = batch[:0]
				}
			}
		}
		rows += s.rows
	}
	report(b, began, rows)
}
