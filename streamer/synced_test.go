package streamer

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/pgtest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// Postgres 18 keeps a copy of the slot on standbys. One standby is promoted
// before its copy was completely synchronized, and one after.
func TestASyncedSlotSurvivesAFailoverOnceItIsComplete(t *testing.T) {
	w := newWorld(t, pgtest.Options{Version: 18})
	// Only a slot that is made when the standbys are there is copied to them.
	w.exec("SELECT pg_drop_replication_slot('s')")
	var standbys []*copied
	for _, name := range []string{"early", "late"} {
		w.exec("SELECT pg_create_physical_replication_slot($1)", name)
		standbys = append(standbys, w.coldCopy(w.conninfo(),
			"primary_slot_name="+name, "hot_standby_feedback=on"))
	}
	early, late := standbys[0], standbys[1]
	id, err := w.lake.ReadIdentity(t.Context())
	w.must(err)
	w.lake = lake.New("file:///lake", lake.NewMemory())
	id.StartLSN = w.lsn("SELECT lsn::text FROM pg_create_logical_replication_slot('s', 'pgoutput', false, false, true)")
	w.must(w.lake.CreateIdentity(t.Context(), id))
	w.unpublished() // the standbys cannot go back to where the slot begins
	early.replayed()
	late.replayed()

	early.synchronize()
	w.until("the slot is on the standby, and temporary", func() bool { return early.slot("temporary AND synced") })
	cfg := w.cfg.Replication
	cfg.ConnString = early.pg.URL()
	admin, err := replication.NewAdmin(cfg, testLog(t))
	w.must(err)
	facts, err := admin.Inspect(t.Context())
	w.must(err)
	if said := fmt.Sprint(replication.Check(facts)); !strings.Contains(said, "not yet completely synchronized") || !strings.Contains(said, "in recovery") {
		t.Errorf("of a temporary copy on a standby the check before a start says %s", said)
	}
	early.promote()
	err = w.start(func(c *Config) { c.Replication = cfg }).ended()
	if !errors.Is(err, replication.ErrSlotMissing) || !strings.Contains(err.Error(), "replaced by one that does not have it") {
		t.Errorf("got %v, want a refusal because the temporary copy is gone", err)
	}
	w.must(early.pg.Stop(pgtest.Immediate))

	s := w.start()
	facts, err = s.admin.Inspect(t.Context())
	w.must(err)
	if said := fmt.Sprint(replication.Warnings(facts)); !strings.Contains(said, "synchronized_standby_slots is empty") {
		t.Errorf("nothing warns that the standby may be behind the lake: %s", said)
	}
	w.must(w.pg.Set(map[string]string{"synchronized_standby_slots": "late"}))
	w.must(w.pg.Reload())
	w.insert(5)
	w.caughtUp()
	late.synchronize()
	w.until("the copy is complete", func() bool {
		w.insert(1)
		w.exec("SELECT pg_log_standby_snapshot()")
		return late.slot("NOT temporary AND synced")
	})
	w.caughtUp()
	w.temporal.hold(func(segment.Ref) bool { return true })
	w.insert(25)
	w.until("segments are in flight", func() bool { return len(w.temporal.running()) == 3 })
	inFlight := w.temporal.running()
	// Nobody waits for the standby: what is recorded it has.
	at := late.promote()
	late.insert(7)
	late.takeOver()
	w.temporal.hold(func(segment.Ref) bool { return false })
	w.insert(13)
	w.caughtUp()
	w.must(s.stop())
	w.checkRows()
	w.checkTimelines(at)
	w.same(inFlight)
}

// synchronize has the standby copy slots. It is begun only when there is
// something to copy: after a failure the server waits for 10 s, and while
// nothing can be done longer and longer.
func (c *copied) synchronize() {
	c.w.t.Helper()
	c.w.must(c.pg.Set(map[string]string{"sync_replication_slots": "on"}))
	c.w.must(c.pg.Reload())
}

// slot says whether the standby has the slot in that state.
func (c *copied) slot(where string) (yes bool) {
	c.w.t.Helper()
	c.ask("SELECT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = 's' AND "+where+")", &yes)
	return yes
}

func testLog(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }
