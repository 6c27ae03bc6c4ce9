package streamer

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/pgtest"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// Another cluster answers at the address: one made by initdb, and the same
// rows after pg_upgrade, with LSNs that go on and a timeline that begins again.
// A streamer that goes on and one that is started both stop, before they touch
// a slot.
func TestAnotherSystemIdentifierIsAStop(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	s := w.start()
	w.insert(5)
	w.caughtUp()
	end := w.walEnd()
	fresh := pgtest.New(t, pgtest.Options{})
	w.must(fresh.Stop(pgtest.Fast))
	upgraded := pgtest.New(t, pgtest.Options{})
	w.must(upgraded.Stop(pgtest.Fast))
	w.must(w.pg.Stop(pgtest.Fast))
	upgrade(t, w.pg, upgraded)

	port := w.pg.Port()
	for name, other := range map[string]*pgtest.Server{"initdb": fresh, "pg_upgrade": upgraded} {
		w.pg = pgtest.New(t, pgtest.Options{Dir: filepath.Dir(other.Data()), Port: port})
		w.connect()
		if name == "pg_upgrade" {
			if got := w.walEnd(); got < end {
				t.Errorf("after pg_upgrade the WAL ends at %s, before at %s", got, end)
			}
			if n := w.count("SELECT count(*) FROM t"); n != 5 {
				t.Errorf("after pg_upgrade there are %d rows", n)
			}
		} else {
			w.exec("CREATE TABLE t (id bigint PRIMARY KEY, v text)")
			w.exec("CREATE PUBLICATION p FOR TABLE t")
		}
		// Somebody has made the slot again.
		w.exec("SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
		confirmed := w.confirmed()
		w.insert(3)
		for _, p := range []*process{s, w.start()} {
			if p == nil {
				continue // it has stopped at the other one
			}
			err := p.ended()
			var stopped *StopError
			if !errors.As(err, &stopped) || !strings.Contains(err.Error(), "system identifier") {
				t.Errorf("%s: got %v, want a stop because of the system identifier", name, err)
			}
		}
		if got := w.confirmed(); got != confirmed {
			t.Errorf("%s: confirmed_flush_lsn moved from %s to %s", name, confirmed, got)
		}
		s = nil
		w.must(w.pg.Stop(pgtest.Fast))
	}
	if _, rows := w.temporal.uploaded(); len(rows) != 5 {
		t.Errorf("%d rows are in the lake, want the 5 of the first server", len(rows))
	}
}

func (w *world) count(sql string) (n int) {
	w.t.Helper()
	if err := w.db.QueryRow(w.t.Context(), sql).Scan(&n); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// upgrade moves a stopped cluster into a fresh one, as the owner of both.
func upgrade(t *testing.T, from, to *pgtest.Server) {
	t.Helper()
	in, err := pgtest.Find(15)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(to.Data())
	cmd := exec.Command(filepath.Join(in.Bin, "pg_upgrade"), "-b", in.Bin, "-B", in.Bin,
		"-d", from.Data(), "-D", to.Data(), "-U", pgtest.Superuser, "-s", dir, "--link")
	cmd.Dir = dir
	fi, err := os.Stat(to.Data())
	if err != nil {
		t.Fatal(err)
	}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: st.Uid, Gid: st.Gid}}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("pg_upgrade: %v: %s", err, out)
	}
}

// The server at the address is a standby that nobody has promoted yet.
func TestAServerInRecoveryIsWaitedForAndRefusedBeforehand(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	standby := w.coldCopy(w.conninfo())
	s := w.start()
	w.insert(5)
	w.caughtUp()
	standby.replayed()
	standby.takeOver()
	w.until("the streamer waits for the promotion", func() bool { return strings.Contains(s.Status().State, "in recovery") })
	facts, err := s.admin.Inspect(t.Context())
	w.must(err)
	if ps := replication.Check(facts); len(ps) != 1 || !strings.Contains(ps[0].String(), "in recovery") {
		t.Errorf("the check before a start says %v", ps)
	}
	standby.pg, standby.db = w.pg, w.db
	at := standby.promote()
	w.insert(4)
	w.caughtUp()
	w.must(s.stop())
	w.checkRows()
	w.checkTimelines(at)
}
