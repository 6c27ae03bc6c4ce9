package replication

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/leaktest"
	"github.com/tidemark-cdc/tidemark/internal/pgtest"
)

// versions are the majors that everything is tested on.
var versions = []int{15, 18}

// bound is how long a test waits for something that must happen.
const bound = 2 * time.Minute

// servers are shared by all tests that do not stop them; those that do copy
// templates.
var (
	servers   = map[int]*pgtest.Server{}
	templates = map[int]string{}
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if flood, ok := os.LookupEnv(floodOf); ok {
		var perSecond int
		var to string
		_, err := fmt.Sscan(flood, &perSecond, &to)
		if err == nil {
			err = writeFlood(to, perSecond)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	flag.Parse()
	if flag.Lookup("test.fuzz").Value.String() != "" {
		return m.Run() // needs no server; and its workers are killed, and would leave theirs behind
	}
	for _, v := range versions {
		srv, template, err := start(v)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer srv.Close()
		servers[v], templates[v] = srv, template
	}
	// The tests wait more than they compute.
	if err := flag.Set("test.parallel", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	for _, srv := range servers {
		if err := srv.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if err := leaktest.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// start starts a server and keeps a copy of its folder from before.
func start(version int) (srv *pgtest.Server, template string, err error) {
	ctx := context.Background()
	if srv, err = pgtest.Start(ctx, pgtest.Options{Version: version}); err != nil {
		return nil, "", err
	}
	template = srv.Data() + "-template"
	err = srv.Stop(pgtest.Fast)
	if err == nil {
		err = exec.Command("cp", "-a", srv.Data(), template).Run()
	}
	if err == nil {
		err = srv.Resume(ctx)
	}
	if err != nil {
		return nil, "", errors.Join(err, srv.Close())
	}
	return srv, template, nil
}

// onEach runs a test against both servers, with a database of its own.
func onEach(t *testing.T, f func(t *testing.T, db *database)) {
	t.Parallel()
	for _, v := range versions {
		t.Run(fmt.Sprintf("postgres%d", v), func(t *testing.T) {
			t.Parallel()
			f(t, newDatabase(t, servers[v]))
		})
	}
}

// database is a database with a publication of all tables and a slot, both
// called like it.
type database struct {
	srv   *pgtest.Server
	name  string
	url   string
	conn  *pgx.Conn
	admin *Admin
	start change.LSN
}

var serial atomic.Int64

// newDatabase makes one, with clauses for its CREATE DATABASE.
func newDatabase(t *testing.T, srv *pgtest.Server, clauses ...string) *database {
	t.Helper()
	d := &database{srv: srv, name: fmt.Sprintf("t%d_%d", srv.Version(), serial.Add(1))}
	d.url = srv.URLFor(pgtest.Superuser, "", d.name)
	root := connect(t, srv.URL())
	execute(t, root, "CREATE DATABASE "+d.name+" "+strings.Join(clauses, " "))
	root.Close(context.Background())
	d.conn = connect(t, d.url)
	execute(t, d.conn, "CREATE TABLE t (id int PRIMARY KEY, v text)")
	var err error
	if d.admin, err = NewAdmin(d.config(), discard()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.admin.CreatePublication(t.Context(), d.name, Published{}); err != nil {
		t.Fatal(err)
	}
	if d.start, err = d.admin.CreateSlot(t.Context(), d.name, false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if d.srv.PID() == 0 {
			return
		}
		ctx := context.Background()
		eventually(t, "the slot is free", func() bool {
			_, err := d.admin.DropSlot(ctx, d.name)
			return err == nil
		})
	})
	return d
}

func (d *database) config() Config {
	return Config{ConnString: d.url, Slot: d.name, Publications: []string{d.name}}
}

// open opens a session that is closed at the end of the test.
func (d *database) open(t *testing.T, cfg Config) *Session {
	t.Helper()
	s, err := Open(t.Context(), cfg, discard())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// started opens a session and starts it.
func (d *database) started(t *testing.T, cfg Config) *Session {
	t.Helper()
	s := d.open(t, cfg)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func (d *database) slot(t *testing.T) SlotInfo {
	t.Helper()
	s, err := d.admin.Slot(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// receiver receives until the session ends, as a streamer would: it notes the
// ends of commits, and acknowledges them, and keepalives too, if acking is set.
type receiver struct {
	done chan struct{}
	// err is the session's last word; to be read after done.
	err     error
	acking  atomic.Bool
	rows    atomic.Int64
	commits atomic.Int64
	end     atomic.Uint64
	asked   atomic.Int64
}

func receiveAll(t *testing.T, s *Session, acking bool) *receiver {
	r := &receiver{done: make(chan struct{})}
	r.acking.Store(acking)
	go func() {
		defer close(r.done)
		for {
			m, err := s.Receive()
			if err != nil {
				r.err = err
				return
			}
			r.take(s, m)
		}
	}()
	t.Cleanup(func() {
		_ = s.Close(context.Background())
		<-r.done
	})
	return r
}

func (r *receiver) take(s *Session, m Message) {
	end := m.WALEnd
	switch {
	case m.Keepalive:
		if m.ReplyRequested {
			r.asked.Add(1)
		}
		if r.rows.Load() > 0 && !r.acking.Load() {
			return
		}
	case m.Data[0] == 'I':
		r.rows.Add(1)
		return
	case m.Data[0] == 'C':
		end = commitEnd(m.Data)
		s.NoteEnd(end)
		r.commits.Add(1)
	default:
		return
	}
	r.end.Store(uint64(end))
	if r.acking.Load() {
		s.SetAck(end)
	}
}

// commitEnd reads the end LSN of a Commit message: type, flags, commit LSN, end
// LSN, time.
func commitEnd(b []byte) change.LSN {
	var v uint64
	for _, c := range b[10:18] {
		v = v<<8 | uint64(c)
	}
	return change.LSN(v)
}

// ended waits for the end of the session and gives its error.
func (r *receiver) ended(t *testing.T) error {
	t.Helper()
	select {
	case <-r.done:
		return r.err
	case <-time.After(bound):
		t.Fatalf("the session has not ended in %v", bound)
		return nil
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func execute(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

func ask[T any](t *testing.T, conn *pgx.Conn, sql string, args ...any) T {
	t.Helper()
	var v T
	if err := conn.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// eventually waits for a condition, with a bound.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(bound)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("not in %v: %s", bound, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// throughout checks that a condition holds for a while.
func throughout(t *testing.T, d time.Duration, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if !cond() {
			t.Fatalf("not so any more: %s", what)
		}
	}
}

func discard() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
