package replication

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// hostile settings of a role, each of which would change the text of values or
// end the session.
var hostile = []string{"client_encoding = 'LATIN1'", "DateStyle = 'German, DMY'", "IntervalStyle = 'sql_standard'",
	"TimeZone = 'Asia/Tokyo'", "extra_float_digits = 0", "bytea_output = 'escape'", "search_path = 'public'",
	"quote_all_identifiers = on", "client_min_messages = 'error'", "statement_timeout = '2s'",
	"idle_session_timeout = '1s'", "lock_timeout = '1s'"}

// role makes a role that may replicate, with settings of its own.
func (d *database) role(t *testing.T, settings ...string) Config {
	t.Helper()
	name := "r_" + d.name
	execute(t, d.conn, "CREATE ROLE "+name+" LOGIN REPLICATION")
	for _, s := range settings {
		execute(t, d.conn, "ALTER ROLE "+name+" SET "+s)
	}
	t.Cleanup(func() {
		d.conn.Exec(context.Background(), "DROP OWNED BY "+name)
		d.conn.Exec(context.Background(), "DROP ROLE "+name)
	})
	cfg := d.config()
	cfg.ConnString = d.srv.URLFor(name, "", d.name)
	return cfg
}

func TestValuesAreCopiedAsTheyAreUnderAHostileRole(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		settings := hostile
		if d.srv.Version() >= 17 {
			settings = append(slices.Clone(hostile), "transaction_timeout = '1s'")
		}
		cfg := d.role(t, settings...)
		// The connection string may ask for the same, in its own spelling.
		query := url.Values{"datestyle": {"SQL, DMY"}, "options": {"-c TimeZone=Asia/Tokyo -c DateStyle=German"}}
		cfg.ConnString += "&" + strings.ReplaceAll(query.Encode(), "+", "%20")
		execute(t, d.conn,
			"CREATE TABLE v (id int PRIMARY KEY, d date, z timestamptz, i interval, f float8, b bytea, m money, r regclass, s text)",
			`INSERT INTO v VALUES (1, '2024-02-01', '2024-02-01 12:00:00+00', '1 day 2:03', 0.1::float8 + 0.2, '\xdeadbeef', 1.5, 'v', 'žluť')`)
		s := d.started(t, cfg)
		want := []string{"2024-02-01", "2024-02-01 12:00:00+00", "1 day 02:03:00", "0.30000000000000004", `\xdeadbeef`, "$1.50", "public.v", "žluť"}
		for {
			m, err := s.Receive()
			if err != nil {
				t.Fatal(err)
			}
			if m.Keepalive || m.Data[0] != 'I' {
				continue
			}
			for _, v := range want {
				if !strings.Contains(string(m.Data), v) {
					t.Errorf("%q is not in %q", v, m.Data)
				}
			}
			return
		}
	})
}

// With client_encoding=UTF8 the server would end the stream at such a text.
func TestBytesOfASQLASCIIDatabaseComeAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, v := range versions {
		t.Run(fmt.Sprintf("postgres%d", v), func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t, servers[v], "ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
			execute(t, d.conn, "SET client_encoding = 'SQL_ASCII'", `INSERT INTO t VALUES (1, E'caf\xe9')`,
				`CREATE TYPE odd AS (a int)`, `DO $$ BEGIN EXECUTE E'ALTER TYPE odd ADD ATTRIBUTE "\xe9" int'; END $$`)
			s := d.started(t, d.config())
			for {
				m, err := s.Receive()
				if err != nil {
					t.Fatal(err)
				}
				if m.Keepalive || m.Data[0] != 'I' {
					continue
				}
				if !strings.HasSuffix(string(m.Data), "caf\xe9") {
					t.Errorf("the row came as %q", m.Data)
				}
				break
			}
			types, err := d.admin.Types(t.Context(), []uint32{ask[uint32](t, d.conn, "SELECT 'odd'::regtype::oid")})
			if err != nil || len(types) != 1 || len(types[0].Fields) != 2 {
				t.Errorf("types with such names: %+v, %v", types, err)
			}
		})
	}
}

func TestSessionRefusesSettingsThatDidNotTakeHold(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, servers[15])
	s := d.open(t, d.config())
	if err := verifyPinned(t.Context(), s.pg); err != nil {
		t.Fatal(err)
	}
	if _, err := s.pg.Exec(t.Context(), "SET IntervalStyle = 'iso_8601'").ReadAll(); err != nil {
		t.Fatal(err)
	}
	err := verifyPinned(t.Context(), s.pg)
	if !errors.Is(err, ErrSettings) || !strings.Contains(err.Error(), "iso_8601") || Transient(err) {
		t.Fatalf("got %v", err)
	}
}

func TestSessionKnowsTheServer(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		s := d.open(t, d.role(t, "wal_sender_timeout = '7s'"))
		f, err := d.admin.Inspect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sys := s.System()
		if sys.SystemID != f.SystemID || sys.SystemID == "" || sys.Timeline != 1 || f.Timeline != 1 || sys.Database != d.name ||
			sys.ServerVersion/10000 != d.srv.Version() || sys.WALEnd < d.start {
			t.Errorf("system %+v, facts %+v", sys, f)
		}
		if s.WALSenderTimeout() != 7*time.Second {
			t.Errorf("the role's wal_sender_timeout is not seen: %v", s.WALSenderTimeout())
		}
		h, err := s.History(t.Context())
		if err != nil || h.TimelineOf(sys.WALEnd) != 1 {
			t.Errorf("history %+v, %v", h, err)
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if owner, err := d.admin.SlotOwner(t.Context(), d.name); err != nil || owner != s.PID() {
			t.Errorf("the slot is of %d, %v, and the session is %d", owner, err, s.PID())
		}
		if s.ConfirmedFlush() != d.start {
			t.Errorf("the stream begins at %s, and the slot was made at %s", s.ConfirmedFlush(), d.start)
		}
		name := ask[string](t, d.conn, "SELECT application_name FROM pg_stat_activity WHERE pid = $1", int32(s.PID()))
		if name != "tidemark/"+d.name {
			t.Errorf("application_name is %q", name)
		}
	})
}

func TestConnectionStaysWhileNobodyReceives(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		// Several timeouts pass. Each is long enough for a machine that is busy with
		// other things to find time for a report within it.
		s := d.started(t, d.role(t, "wal_sender_timeout = '6s'"))
		// More than all buffers between the server and here can hold.
		execute(t, d.conn, "INSERT INTO t SELECT n, repeat(md5(n::text), 100) FROM generate_series(1, 10000) n")
		throughout(t, 16*time.Second, "the session holds the slot", func() bool { return d.slot(t).ActivePID == s.PID() })
		if st := d.slot(t); st.ConfirmedFlush != d.start {
			t.Errorf("confirmed_flush_lsn moved to %s", st.ConfirmedFlush)
		}
		r := receiveAll(t, s, true)
		eventually(t, "all rows come", func() bool { return r.rows.Load() == 10000 && r.commits.Load() > 0 })
		throughout(t, 10*time.Second, "the session holds the slot", func() bool { return d.slot(t).ActivePID == s.PID() })
	})
}

func TestNothingIsReportedBeyondWhatCame(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		s := d.started(t, d.role(t, "wal_sender_timeout = '4s'"))
		execute(t, d.conn, "INSERT INTO t VALUES (1, 'a')")
		s.SetAck(1 << 60)
		throughout(t, 2*time.Second, "confirmed_flush_lsn stands at the slot's start", func() bool { return d.slot(t).ConfirmedFlush == d.start })
		receiveAll(t, s, false)
		eventually(t, "confirmed_flush_lsn moves", func() bool { return d.slot(t).ConfirmedFlush > d.start })
		execute(t, d.conn, "INSERT INTO t VALUES (2, 'b')")
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		end, err := d.admin.FlushLSN(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := d.slot(t).ConfirmedFlush; got > end {
			t.Fatalf("confirmed_flush_lsn %s is beyond the WAL, %s", got, end)
		}
	})
}

func TestAckReachesTheServer(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		s := d.started(t, d.config())
		r := receiveAll(t, s, false)
		execute(t, d.conn, "INSERT INTO t VALUES (1, 'a')")
		eventually(t, "the commit comes", func() bool { return r.commits.Load() == 1 })
		throughout(t, 300*time.Millisecond, "nothing is confirmed without an ack", func() bool { return d.slot(t).ConfirmedFlush < change.LSN(r.end.Load()) })
		// Each ack is told when it grows, not when a status update is due: that
		// is every 10 s.
		begin := time.Now()
		const acks = 5
		for n := range int64(acks) {
			eventually(t, "the commit comes", func() bool { return r.commits.Load() == n+1 })
			s.SetAck(change.LSN(r.end.Load()))
			eventually(t, "the ack arrives", func() bool { return d.slot(t).ConfirmedFlush == change.LSN(r.end.Load()) })
			execute(t, d.conn, fmt.Sprintf("INSERT INTO t VALUES (%d, 'b')", n+2))
		}
		if took := time.Since(begin); took > 30*time.Second {
			t.Errorf("%d acks took %v", acks, took)
		}
		// The last ack goes out with the session, which leaves the slot free.
		eventually(t, "the commit comes", func() bool { return r.commits.Load() == acks+1 })
		last := change.LSN(r.end.Load())
		s.SetAck(last)
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if st := d.slot(t); st.ConfirmedFlush != last || st.Active {
			t.Errorf("after Close the slot stands at %s, want %s; active: %v", st.ConfirmedFlush, last, st.Active)
		}
		if err := r.ended(t); !errors.Is(err, ErrClosed) || Transient(err) {
			t.Errorf("Receive returned %v", err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Errorf("a second Close: %v", err)
		}
	})
}

// What was not read yet must not take the final status with it.
func TestFinalAckArrivesThoughMuchIsUnread(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		s := d.started(t, d.config())
		execute(t, d.conn, "INSERT INTO t VALUES (0, 'a')")
		execute(t, d.conn, "INSERT INTO t SELECT n, repeat(md5(n::text), 100) FROM generate_series(1, 10000) n")
		r := &receiver{}
		for r.commits.Load() == 0 {
			m, err := s.Receive()
			if err != nil {
				t.Fatal(err)
			}
			r.take(s, m)
		}
		end := change.LSN(r.end.Load())
		throughout(t, time.Second, "nothing is confirmed", func() bool { return d.slot(t).ConfirmedFlush < end })
		s.SetAck(end)
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if st := d.slot(t); st.ConfirmedFlush != end || st.Active {
			t.Errorf("after Close the slot stands at %s, want %s; active: %v", st.ConfirmedFlush, end, st.Active)
		}
	})
}

func TestCloseDoesNotWaitForAServerThatStands(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, servers[15])
	s := d.started(t, d.config())
	receiveAll(t, s, true)
	pid := int(s.PID())
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pid, syscall.SIGCONT)
	begin := time.Now()
	_ = s.Close(t.Context())
	if took := time.Since(begin); took > closeBound+20*time.Second {
		t.Fatalf("Close took %v", took)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_ = s.Close(canceled)
}

func TestStartRefusesSlots(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		other := newDatabase(t, d.srv)
		second := d.started(t, d.config())
		execute(t, d.conn, "SELECT pg_create_physical_replication_slot('phys_"+d.name+"')",
			"SELECT pg_create_logical_replication_slot('two_"+d.name+"', 'pgoutput', false, true)")
		t.Cleanup(func() {
			d.admin.DropSlot(context.Background(), "phys_"+d.name)
			d.admin.DropSlot(context.Background(), "two_"+d.name)
		})
		for name, c := range map[string]struct {
			slot      string
			want      error
			transient bool
			text      string
		}{
			"in use":         {d.name, ErrSlotInUse, true, "takes over"},
			"missing":        {"nonesuch", ErrSlotMissing, false, "tidemark setup"},
			"other database": {other.name, ErrSlotUnsuitable, false, other.name},
			"physical":       {"phys_" + d.name, ErrSlotUnsuitable, false, "physical"},
			"two-phase":      {"two_" + d.name, ErrSlotUnsuitable, false, "two_phase"},
		} {
			cfg := d.config()
			cfg.Slot = c.slot
			s := d.open(t, cfg)
			err := s.Start(t.Context())
			if !errors.Is(err, c.want) || Transient(err) != c.transient || !strings.Contains(fmt.Sprint(err), c.text) {
				t.Errorf("%s: got %v", name, err)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Errorf("%s: close: %v", name, err)
			}
		}
		if err := second.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.started(t, d.config()) // at once
	})
}

func TestDroppedPublicationStopsTheStream(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		cfg := d.role(t, hostile...) // 18 tells by a warning
		execute(t, d.conn, "INSERT INTO t VALUES (1, 'a')", "DROP PUBLICATION "+d.name, "INSERT INTO t VALUES (2, 'b')",
			"CREATE PUBLICATION "+d.name+" FOR ALL TABLES", "INSERT INTO t VALUES (3, 'c')")
		s := d.started(t, cfg)
		r := receiveAll(t, s, true)
		err := r.ended(t)
		if !errors.Is(err, ErrPublicationMissing) || Transient(err) || !strings.Contains(err.Error(), d.name) {
			t.Fatalf("got %v", err)
		}
		if n := r.rows.Load(); n > 1 {
			t.Errorf("%d rows came before the error", n)
		}
		t.Log(err)
	})
}

func TestTerminatedWalsenderIsTransient(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		s := d.started(t, d.config())
		r := receiveAll(t, s, true)
		execute(t, d.conn, fmt.Sprintf("SELECT pg_terminate_backend(%d)", s.PID()))
		err := r.ended(t)
		var pg *pgconn.PgError
		if !errors.Is(err, ErrServerShutdown) || !Transient(err) || !errors.As(err, &pg) || pg.Code != "57P01" {
			t.Fatalf("got %v", err)
		}
		select {
		case <-s.Failed():
		default:
			t.Error("Failed is not closed")
		}
		if err := s.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

func TestConnectErrorsSayWhatToDoAndKeepThePassword(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, servers[15])
	execute(t, d.conn, "CREATE ROLE plain_"+d.name+" LOGIN")
	t.Cleanup(func() { d.conn.Exec(context.Background(), "DROP ROLE plain_"+d.name) })
	for name, c := range map[string]struct {
		conn, slot, text string
		transient        bool
	}{
		"no REPLICATION":  {d.srv.URLFor("plain_"+d.name, "hunter2", d.name), d.name, "REPLICATION", false},
		"no such role":    {d.srv.URLFor("nobody_here", "hunter2", d.name), d.name, "nobody_here", true},
		"no database":     {d.srv.URLFor("postgres", "hunter2", "nodb"), d.name, "nodb", false},
		"nobody listens":  {"postgres://u:hunter2@127.0.0.1:1/x?sslmode=disable", d.name, "127.0.0.1:1", true},
		"not a URL":       {"postgres://u:hunter2@127.0.0.1:port/x", d.name, "connection string", false},
		"nothing at all":  {" ", d.name, "no connection string", false},
		"a bad slot name": {d.url, "No Such; Name", "lower-case", false},
	} {
		cfg := d.config()
		cfg.ConnString, cfg.Slot = c.conn, c.slot
		_, err := Open(t.Context(), cfg, discard())
		if err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the password is in the error: %v", name, err)
		}
		if name != "nothing at all" && name != "a bad slot name" && Transient(err) != c.transient {
			t.Errorf("%s: transient is %v for %v", name, Transient(err), err)
		}
	}
}
