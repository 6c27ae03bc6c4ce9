package streamer

import (
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/pgtest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// The database was quiet, so the ack stands beyond the switchpoint of a standby
// that was behind, and no row is lost. The LSNs in between are used again, by
// rows: what was acknowledged of them once must not count. Once under a
// streamer that goes on, once under one that is started after the failover.
func TestAnIdleAckBeyondTheSwitchpointPassesNoNewRow(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	// How far the stream was received is reported every second.
	w.exec("ALTER ROLE postgres SET wal_sender_timeout = '4s'")
	s := w.start()
	w.insert(5)
	w.caughtUp()
	w.must(s.stop())
	var switchpoints []change.LSN
	for _, goesOn := range []bool{true, false} {
		standby := w.coldCopy(nowhere)
		s := w.start()
		w.until("the streamer streams", func() bool { return s.Status().Connected })
		w.unpublished()
		end := w.walEnd()
		w.until("the quiet is seen", func() bool {
			l := s.present()
			return l != nil && l.buf.ack().LSN >= end
		})
		w.must(s.stop())
		rec, _, err := w.lake.ReadAck(t.Context())
		w.must(err)
		if rec.Ack < end {
			t.Fatalf("the ack on record is %s, the quiet lasted to %s", rec.Ack, end)
		}

		if goesOn {
			s = w.start(func(c *Config) { c.ShutdownTimeout = -1 })
			w.until("the streamer streams", func() bool { return s.Status().Connected })
		}
		w.temporal.hold(func(segment.Ref) bool { return true })
		at := standby.promote()
		switchpoints = append(switchpoints, at)
		standby.insert(5)
		standby.takeOver()
		if got := w.walEnd(); at >= rec.Ack || got >= rec.Ack {
			t.Fatalf("switchpoint %s and WAL end %s are to lie below the old ack %s", at, got, rec.Ack)
		}
		if !goesOn {
			s = w.start(func(c *Config) { c.ShutdownTimeout = -1 })
		}
		w.until("the new rows are recorded", func() bool { return len(w.temporal.running()) == 1 })
		row := w.temporal.running()[0].First
		// The stream passes the old ack, which held rows now lie below.
		w.unpublished()
		w.until("the stream is beyond the old ack", func() bool {
			return w.lsn("SELECT coalesce(max(write_lsn), '0/0')::text FROM pg_stat_replication") > rec.Ack
		})
		w.must(s.stop())
		if got := w.confirmed(); got > row.LSN {
			t.Errorf("the slot stands at %s, and the row at %s is not in the lake", got, row)
		}
		w.temporal.hold(func(segment.Ref) bool { return false })
		s = w.start()
		w.insert(3)
		w.caughtUp()
		w.must(s.stop())
		w.checkRows()
		w.checkTimelines(switchpoints...)
	}
}

// present is the streamer's life, or nil between two.
func (p *process) present() *life {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.life
}
