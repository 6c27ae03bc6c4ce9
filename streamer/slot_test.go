package streamer

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/pgtest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// away takes the slot from whoever streams from it and has sql do something to
// it before anybody has it again.
func (w *world) away(sql string) {
	w.t.Helper()
	w.exec(`DO $$ BEGIN LOOP
		PERFORM pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = 's' AND active_pid IS NOT NULL;
		BEGIN ` + sql + `; EXIT;
		EXCEPTION WHEN object_in_use THEN NULL; END;
	END LOOP; END $$`)
}

// The slot is dropped, dropped and made again, or moved while a streamer
// streams from it, with rows that are in no lake yet. No streamer makes another
// one or goes on from where the slot is now: that would leave the rows out.
func TestASlotThatIsTakenAwayWhileStreamingIsAStop(t *testing.T) {
	const drop = "PERFORM pg_drop_replication_slot('s')"
	for _, version := range []int{15, 18} {
		for name, c := range map[string]struct {
			sql  string
			kind error
			say  string
		}{
			"dropped":              {drop, replication.ErrSlotMissing, `replication slot "s" does not exist`},
			"dropped and made new": {drop + "; PERFORM pg_create_logical_replication_slot('s', 'pgoutput')", aStop, "ahead of what the lake has on record"},
			"moved":                {"PERFORM pg_replication_slot_advance('s', pg_current_wal_lsn())", aStop, "ahead of what the lake has on record"},
		} {
			t.Run(fmt.Sprintf("postgres%d/%s", version, name), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, pgtest.Options{Version: version})
				s := w.start()
				w.insert(5)
				w.caughtUp()
				w.temporal.hold(func(segment.Ref) bool { return true })
				w.insert(25)
				w.until("segments are in flight", func() bool { return len(w.temporal.running()) == 3 })
				w.away(c.sql)
				if err := s.ended(); errors.Is(err, replication.ErrSlotMissing) {
					// It has looked between the two, and is right as well.
					w.stopped(s, replication.ErrSlotMissing)
				} else {
					w.stopped(s, c.kind, c.say)
				}
				w.refuses(c.kind, c.say) // a supervisor starts it again
			})
		}
	}
}

// A publication that is dropped while rows come is a stop, before any of its
// rows is passed, and making it again does not hide that.
func TestAPublicationThatIsDroppedWhileStreamingIsAStop(t *testing.T) {
	for _, version := range []int{15, 18} {
		t.Run(fmt.Sprintf("postgres%d", version), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, pgtest.Options{Version: version})
			s := w.start()
			w.insert(5)
			w.caughtUp()
			w.exec("DROP PUBLICATION p")
			before := w.walEnd()
			w.exec("INSERT INTO t VALUES (1000, 'in no publication')")
			said := []string{"publication of this pipeline (p) did not exist", "run tidemark setup"}
			w.stopped(s, replication.ErrPublicationMissing, said...)
			w.exec("CREATE PUBLICATION p FOR TABLE t")
			w.refuses(replication.ErrPublicationMissing, said...)
			if got := w.confirmed(); got > before {
				t.Errorf("the slot stands at %s, beyond %s, where rows were left out", got, before)
			}
			w.checkRows()
		})
	}
}
