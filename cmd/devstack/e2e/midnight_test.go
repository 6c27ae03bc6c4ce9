package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/tally"
)

// clock is the clock of a Postgres server. It stands still except when it is
// set, so that a commit time is known to the second. (libfaketime reads the
// file anew whenever Postgres asks for the time.)
type clock struct {
	t    *testing.T
	file string
}

func newClock(t *testing.T, now string) *clock {
	t.Helper()
	// The user that Postgres runs as has to read it.
	dir, err := os.MkdirTemp("", "tidemark-clock-")
	if err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := &clock{t: t, file: filepath.Join(dir, "now")}
	c.set(now)
	return c
}

// set sets the clock to a time in UTC, YYYY-MM-DD hh:mm:ss.
func (c *clock) set(now string) {
	c.t.Helper()
	next := c.file + ".next"
	err := os.WriteFile(next, []byte(now+"\n"), 0o644)
	if err == nil {
		err = os.Rename(next, c.file)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// env makes a server live by the clock.
func (c *clock) env() []string {
	c.t.Helper()
	places := []string{"/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib/faketime/libfaketime.so.1", "/usr/local/lib/faketime/libfaketime.so.1"}
	for _, p := range places {
		if found, _ := filepath.Glob(p); len(found) > 0 {
			return []string{
				"LD_PRELOAD=" + found[0], "FAKETIME_TIMESTAMP_FILE=" + c.file,
				"FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", "TZ=UTC",
			}
		}
	}
	c.t.Fatalf("libfaketime is in none of %v: run scripts/bootstrap", places)
	return nil
}

// Commit times cross midnight UTC in both directions, by a second and by days.
// Every row lies in the folder of its own commit day, and the chain of segments
// is whole, also when the process dies while segments of all these days are in
// flight.
func TestEveryRowLiesInTheFolderOfItsCommitDayAlsoWhenTheClockGoesBack(t *testing.T) {
	const before, after = "2024-02-29 23:59:59", "2024-03-01 00:00:00"
	for _, version := range versions {
		t.Run(fmt.Sprint("Postgres ", version), func(t *testing.T) {
			c := newClock(t, before)
			h := harness.New(t, harness.Options{
				Postgres: version, PostgresEnv: c.env(), TemporalMemory: true,
				// With a clock that stands still nothing can ever time out, and
				// with one that jumps everything would.
				PostgresSettings: map[string]string{"wal_sender_timeout": "0"},
			})
			p := h.Run()
			p.WaitStreaming()
			h.SQL(`create table public.days (id bigint primary key, committed text not null)`)
			m := &midnight{t: t, h: h, clock: c, days: map[string]int64{}}

			m.transactions(before, 3)
			m.transactions(after, 3)
			m.transactions(before, 2)
			m.transactions("2024-02-27 12:00:00", 2)
			m.transactions(after, 1)
			m.across(before, after)
			m.across(after, before)
			m.transactions(after, 1)
			h.WaitAck()

			hold := h.Stack.Faults.Hold(stack.PutsOfSegments, 0)
			for _, now := range []string{before, after, before, "2024-03-01 00:00:01", "2024-02-28 00:00:00"} {
				m.transactions(now, 2)
			}
			m.across(before, after)
			p.WaitStatus(func(st harness.Status) string {
				if n := len(st.InFlight); n < 6 {
					return fmt.Sprintf("%d segments are in flight, there will be 6 or more", n)
				}
				return ""
			})
			p.Kill9()
			hold.Remove()
			p = h.Run()
			p.WaitStreaming()
			h.WaitAck()

			h.LakeHas(tally.Counts{{Table: "public.days", Operation: "insert"}: m.rows})
			h.SameAsPostgres("public.days")
			days, err := h.Lake().Days(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]int64{}
			for _, d := range days {
				got[d.Day] = d.Rows
			}
			if !maps.Equal(got, m.days) {
				t.Errorf("the lake has rows of these days: %v, committed were %v", got, m.days)
			}
			other, err := h.Lake().Query(t.Context(), `select after, commit_time from %s
				where json_extract_string(after, '$.committed') <> strftime(commit_time at time zone 'UTC', '%%Y-%%m-%%d %%H:%%M:%%S')`)
			if err != nil {
				t.Fatal(err)
			}
			if other != "" {
				t.Errorf("rows have another commit time than they were committed at:\n%s", other)
			}
			p.Stop()
		})
	}
}

// midnight writes rows that say when they were committed.
type midnight struct {
	t     *testing.T
	h     *harness.Harness
	clock *clock
	rows  int64
	days  map[string]int64
}

// insert adds rows that will be committed at a time.
func (m *midnight) insert(tx pgx.Tx, committed string) {
	m.t.Helper()
	const n = 40
	if _, err := tx.Exec(m.t.Context(), `insert into public.days select i, $3 from generate_series($1::bigint, $2::bigint) i`,
		m.rows+1, m.rows+n, committed); err != nil {
		m.t.Fatal(err)
	}
	m.rows += n
	m.days[committed[:4]+"/"+committed[5:7]+"/"+committed[8:10]] += n
}

func (m *midnight) begin(conn *pgx.Conn) pgx.Tx {
	m.t.Helper()
	tx, err := conn.Begin(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
	return tx
}

func (m *midnight) commit(tx pgx.Tx) {
	m.t.Helper()
	if err := tx.Commit(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
}

// transactions commits n of them at a time.
func (m *midnight) transactions(now string, n int) {
	m.t.Helper()
	m.clock.set(now)
	for range n {
		tx := m.begin(m.h.Conn())
		m.insert(tx, now)
		m.commit(tx)
	}
}

// across commits, of two transactions that both began and wrote at from, one
// then and one at to.
func (m *midnight) across(from, to string) {
	m.t.Helper()
	m.clock.set(from)
	other, err := pgx.Connect(m.t.Context(), m.h.Stack.Postgres.URL())
	if err != nil {
		m.t.Fatal(err)
	}
	defer other.Close(m.t.Context())
	late, early := m.begin(m.h.Conn()), m.begin(other)
	m.insert(late, to)
	m.insert(early, from)
	m.insert(late, to)
	m.commit(early)
	m.clock.set(to)
	m.insert(late, to)
	m.commit(late)
}
