package streamer

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/pgtest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// copied is a second server made from a cold copy of the world's, slot
// included. It listens elsewhere until takeOver.
type copied struct {
	w  *world
	pg *pgtest.Server
	db *pgx.Conn
}

// nowhere is a primary_conninfo at which nobody answers: the standby stays as
// far as it was copied.
const nowhere = "host=127.0.0.1 port=1 connect_timeout=1"

func (w *world) conninfo() string {
	return fmt.Sprintf("host=127.0.0.1 port=%d user=%s dbname=postgres", w.pg.Port(), pgtest.Superuser)
}

// coldCopy stops the world's server for a moment and starts a copy of it as a
// standby of primary, or, if that is empty, as a server in its own right.
func (w *world) coldCopy(primary string, settings ...string) *copied {
	w.t.Helper()
	w.must(w.pg.Stop(pgtest.Fast))
	opt := pgtest.Options{Version: w.pg.Version(), From: w.pg.Data(), StandbyOf: primary,
		Settings: map[string]string{"wal_retrieve_retry_interval": "100ms"}}
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		opt.Settings[name] = value
	}
	c := &copied{w: w, pg: pgtest.New(w.t, opt)}
	w.must(w.pg.Resume(w.t.Context()))
	w.connect()
	c.db = c.connect()
	return c
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (c *copied) connect() *pgx.Conn {
	c.w.t.Helper()
	db, err := pgx.Connect(c.w.t.Context(), c.pg.URL())
	c.w.must(err)
	c.w.t.Cleanup(func() { _ = db.Close(context.Background()) })
	return db
}

func (c *copied) ask(sql string, into ...any) {
	c.w.t.Helper()
	if err := c.db.QueryRow(c.w.t.Context(), sql).Scan(into...); err != nil {
		c.w.t.Fatalf("%s: %v", sql, err)
	}
}

// replayed waits until the standby has everything that is committed now.
func (c *copied) replayed() {
	c.w.t.Helper()
	end := c.w.walEnd()
	c.w.until(fmt.Sprintf("the standby has replayed %s", end), func() bool {
		var s string
		c.ask("SELECT coalesce(pg_last_wal_replay_lsn(), '0/0')::text", &s)
		return c.w.parse(s) >= end
	})
}

// promote makes the standby a primary and gives the switchpoint, while the
// world's server goes on.
func (c *copied) promote() change.LSN {
	c.w.t.Helper()
	var ok bool
	c.ask("SELECT pg_promote()", &ok)
	if !ok {
		c.w.t.Fatal("the standby was not promoted in time")
	}
	var at string
	c.ask(`SELECT m[1] FROM regexp_matches((SELECT pg_read_file('pg_wal/' || max(name)) FROM pg_ls_waldir() WHERE name LIKE '%.history'),
		'\d+\t(\S+)\t', 'g') AS m ORDER BY m[1]::pg_lsn DESC LIMIT 1`, &at)
	return c.w.parse(at)
}

// takeOver ends the world's server and puts the copy at its address.
func (c *copied) takeOver() {
	c.w.t.Helper()
	w := c.w
	port := w.pg.Port()
	w.must(c.pg.Stop(pgtest.Fast))
	w.must(w.pg.Stop(pgtest.Immediate))
	w.pg = pgtest.New(w.t, pgtest.Options{Version: w.pg.Version(), Dir: filepath.Dir(c.pg.Data()), Port: port})
	w.connect()
}

// insert has the copy commit n rows of its own, which count as the world's.
func (c *copied) insert(n int) {
	c.w.t.Helper()
	old := c.w.db
	c.w.db = c.db
	c.w.insert(n)
	c.w.db = old
}

// unpublished writes WAL that no row of the stream comes from.
func (w *world) unpublished() {
	w.t.Helper()
	w.exec("CREATE TABLE IF NOT EXISTS quiet (v text)")
	w.exec("INSERT INTO quiet SELECT repeat('x', 1000) FROM generate_series(1, 2000)")
}

// checkTimelines sees that each row of t stands on the timeline on which it was
// written, and no segment on two.
func (w *world) checkTimelines(switchpoints ...change.LSN) {
	w.t.Helper()
	refs, rows := w.temporal.uploaded()
	for _, ref := range refs {
		if ref.First.Timeline != ref.Last.Timeline {
			w.t.Errorf("segment %s to %s is of two timelines", ref.First, ref.Last)
		}
	}
	seen := make([]int, len(switchpoints)+1)
	for _, r := range rows {
		want := 0
		for want < len(switchpoints) && r.Position.LSN >= switchpoints[want] {
			want++
		}
		seen[want]++
		if r.Position.Timeline != change.Timeline(want+1) {
			w.t.Errorf("position %s, want timeline %d (switchpoints %s)", r.Position, want+1, switchpoints)
		}
	}
	for i, n := range seen {
		if n == 0 {
			w.t.Errorf("no row is on timeline %d (switchpoints %s)", i+1, switchpoints)
		}
	}
}

// A standby with a copy of the slot takes over twice: once under a streamer
// that goes on, once while none runs. The slot of the copy is behind, so rows
// that are in the lake come again, and segments are in flight both times.
func TestAfterAFailoverRowsKeepTheirPositions(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	standby := w.coldCopy(w.conninfo())
	s := w.start(func(c *Config) { c.ShutdownTimeout = -1 })
	w.insert(15)
	w.caughtUp()
	w.temporal.hold(func(segment.Ref) bool { return true })
	w.insert(25)
	w.until("segments are in flight", func() bool { return len(w.temporal.running()) == 3 })
	inFlight := w.temporal.running()
	standby.replayed()
	first := standby.promote()
	standby.insert(7)
	standby.takeOver()
	w.until("the streamer has the new server", func() bool { return s.Status().Connected })
	w.temporal.hold(func(segment.Ref) bool { return false })
	w.insert(13)
	w.caughtUp()
	w.checkRows()
	w.checkTimelines(first)
	w.same(inFlight)

	standby = w.coldCopy(w.conninfo())
	w.until("the streamer is back", func() bool { return s.Status().Connected })
	w.insert(4)
	w.caughtUp()
	w.temporal.hold(func(segment.Ref) bool { return true })
	w.insert(25)
	w.until("segments are in flight", func() bool { return len(w.temporal.running()) == 3 })
	inFlight = w.temporal.running()
	w.must(s.stop())
	w.insert(2) // before the switchpoint, and nobody has seen it yet
	standby.replayed()
	second := standby.promote()
	standby.insert(2) // one segment, were it not for the timeline
	standby.takeOver()
	w.temporal.hold(func(segment.Ref) bool { return false })
	s = w.start()
	w.insert(12)
	w.caughtUp()
	w.must(s.stop())
	w.checkRows()
	w.checkTimelines(first, second)
	w.same(inFlight)
}

// same sees that segments were uploaded as they were recorded.
func (w *world) same(recorded []segment.Ref) {
	w.t.Helper()
	refs, _ := w.temporal.uploaded()
	last := map[change.Position]change.Position{}
	for _, ref := range refs {
		last[ref.First] = ref.Last
	}
	for _, ref := range recorded {
		if last[ref.First] != ref.Last {
			w.t.Errorf("segment %s was recorded up to %s and uploaded up to %s", ref.First, ref.Last, last[ref.First])
		}
	}
}
