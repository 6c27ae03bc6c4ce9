package streamer

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/leaktest"
	"github.com/tidemark-cdc/tidemark/internal/pgtest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
	"github.com/tidemark-cdc/tidemark/streamer/ring"
)

func TestMain(m *testing.M) {
	code := leaktest.Run(m)
	for _, t := range templates {
		if err := t.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// templates are stopped clusters, by version, that worlds begin as copies of.
var (
	templatesMu sync.Mutex
	templates   = map[int]*pgtest.Server{}
)

func template(t *testing.T, version int) string {
	t.Helper()
	templatesMu.Lock()
	defer templatesMu.Unlock()
	s := templates[version]
	if s == nil {
		var err error
		if s, err = pgtest.Start(context.Background(), pgtest.Options{Version: version}); err != nil {
			t.Fatal(err)
		}
		templates[version] = s
		if err := s.Stop(pgtest.Fast); err != nil {
			t.Fatal(err)
		}
	}
	return s.Data()
}

// bound is how long a test waits for something that must happen.
const bound = 2 * time.Minute

// world is a database, a lake and a Temporal that outlive streamers.
type world struct {
	t        *testing.T
	pg       *pgtest.Server
	db       *pgx.Conn
	lake     *lake.Lake
	store    *lake.Memory
	temporal *fakeTemporal
	tracker  Tracker // what streamers are given: temporal
	observer Observer
	tracer   Tracer
	cfg      Config
	rows     int // inserted so far
	streams  atomic.Int64
	logs     logs
}

// logs keeps what streamers have logged, and hands it on to the test's output.
type logs struct {
	mu   sync.Mutex
	to   io.Writer
	text strings.Builder
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	return l.to.Write(p)
}

// logged says whether some line of the logs has all the parts.
func (w *world) logged(parts ...string) bool {
	w.logs.mu.Lock()
	defer w.logs.mu.Unlock()
	for line := range strings.Lines(w.logs.text.String()) {
		if !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(line, p) }) {
			return true
		}
	}
	return false
}

func newWorld(t *testing.T, opt pgtest.Options) *world {
	if opt.Password == "" {
		opt.From = template(t, opt.Version)
	}
	w := &world{t: t, pg: pgtest.New(t, opt), store: lake.NewMemory(), temporal: newFakeTemporal()}
	w.tracker, w.logs.to = w.temporal, t.Output()
	t.Cleanup(w.temporal.close)
	w.lake = lake.New("file:///lake", w.store)
	w.connect()
	w.exec("CREATE TABLE t (id bigint PRIMARY KEY, v text)")
	w.exec("CREATE PUBLICATION p FOR TABLE t")
	w.cfg = Config{
		Pipeline:        "test",
		Replication:     replication.Config{ConnString: w.pg.URL(), Slot: "s", Publications: []string{"p"}},
		Ring:            ring.Config{SegmentRows: 10, MaxAge: 100 * time.Millisecond},
		ShutdownTimeout: 5 * time.Second,
	}
	w.setUp()
	return w
}

func (w *world) connect() {
	w.t.Helper()
	db, err := pgx.Connect(w.t.Context(), w.pg.URL())
	if err != nil {
		w.t.Fatal(err)
	}
	w.db = db
	w.t.Cleanup(func() { _ = db.Close(context.Background()) })
}

func (w *world) setUp() {
	w.t.Helper()
	var id lake.Identity
	id.Pipeline = w.cfg.Pipeline
	err := w.db.QueryRow(w.t.Context(), "SELECT system_identifier::text, timeline_id FROM pg_control_system(), pg_control_checkpoint()").Scan(&id.SystemID, &id.Timeline)
	if err != nil {
		w.t.Fatal(err)
	}
	var start string
	if err := w.db.QueryRow(w.t.Context(), "SELECT lsn::text FROM pg_create_logical_replication_slot('s', 'pgoutput')").Scan(&start); err != nil {
		w.t.Fatal(err)
	}
	id.StartLSN = w.parse(start)
	if err := w.lake.CreateIdentity(w.t.Context(), id); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) parse(s string) change.LSN {
	w.t.Helper()
	lsn, err := change.ParseLSN(s)
	if err != nil {
		w.t.Fatal(err)
	}
	return lsn
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.db.Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

// insert commits n rows in one transaction.
func (w *world) insert(n int) {
	w.t.Helper()
	w.exec("INSERT INTO t SELECT i, 'row ' || i FROM generate_series($1::bigint, $2::bigint) i", w.rows+1, w.rows+n)
	w.rows += n
}

func (w *world) lsn(sql string) change.LSN {
	w.t.Helper()
	var s string
	if err := w.db.QueryRow(w.t.Context(), sql).Scan(&s); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return w.parse(s)
}

func (w *world) confirmed() change.LSN {
	return w.lsn("SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = 's'")
}

func (w *world) walEnd() change.LSN { return w.lsn("SELECT pg_current_wal_lsn()::text") }

// until waits for a condition, with a bound.
func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(bound)
	for tick := time.NewTicker(10 * time.Millisecond); ; <-tick.C {
		if ok() {
			tick.Stop()
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("still not so after %s: %s", bound, what)
		}
	}
}

// caughtUp waits until the slot has confirmed everything that is committed now.
func (w *world) caughtUp() {
	w.t.Helper()
	end := w.walEnd()
	w.until(fmt.Sprintf("the slot has confirmed %s", end), func() bool { return w.confirmed() >= end })
}

// checkRows compares what was uploaded with what was committed: every row once,
// in a chain of segments without gap or overlap.
func (w *world) checkRows() {
	w.t.Helper()
	id, err := w.lake.ReadIdentity(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	refs, rows := w.temporal.uploaded()
	follows := id.Head()
	for _, ref := range refs {
		if ref.Follows != follows {
			w.t.Errorf("segment %s follows %s, want %s", ref.First, ref.Follows, follows)
		}
		follows = ref.Last
	}
	for i := 1; i < len(rows); i++ {
		if rows[i].Position == rows[i-1].Position {
			w.t.Errorf("position %s is there twice", rows[i].Position)
		}
	}
	inserts := 0
	for _, r := range rows {
		if strings.HasPrefix(r.Raw, "I") {
			inserts++
		}
	}
	if inserts != w.rows {
		w.t.Errorf("%d rows were uploaded, %d were committed", inserts, w.rows)
	}
}

// process is a streamer that runs.
type process struct {
	*Streamer
	w        *world
	instance string
	cancel   context.CancelFunc
	done     chan struct{}
	err      error // when done is closed
}

func (w *world) start(change ...func(*Config)) *process {
	w.t.Helper()
	return w.startWith(w.lake, change...)
}

// startWith starts a streamer that is given another view of the lake.
func (w *world) startWith(l Lake, change ...func(*Config)) *process {
	w.t.Helper()
	cfg := w.cfg
	for _, c := range change {
		c(&cfg)
	}
	level := slog.LevelWarn
	if os.Getenv("TIDEMARK_TEST_LOG") != "" {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(&w.logs, &slog.HandlerOptions{Level: level}))
	s, err := New(cfg, Deps{Tracker: w.tracker, Lake: l, Logger: log, Observer: w.observer, Tracer: w.tracer})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{Streamer: s, w: w, instance: fmt.Sprintf("i%d", w.streams.Add(1)), cancel: cancel, done: make(chan struct{})}
	w.temporal.serve(p.instance, s.Source())
	go func() {
		defer close(p.done)
		p.err = s.Run(ctx, segment.Location{Instance: p.instance})
	}()
	w.t.Cleanup(func() { p.stop() })
	return p
}

// stop ends the streamer gracefully and waits for it.
func (p *process) stop() error {
	p.cancel()
	<-p.done
	p.w.temporal.vanish(p.instance)
	return p.err
}

// leaveRunning has a streamer record the one segment that is waiting after
// commit, and ends it before the segment is uploaded. Uploads stay held.
func (w *world) leaveRunning(commit func()) segment.Ref {
	w.t.Helper()
	w.temporal.hold(func(segment.Ref) bool { return true })
	s := w.start(func(c *Config) { c.ShutdownTimeout = time.Millisecond })
	commit()
	w.until("the segment runs", func() bool { return len(w.temporal.running()) == 1 })
	if err := s.stop(); err != nil {
		w.t.Fatal(err)
	}
	return w.temporal.running()[0]
}

// ended waits for the streamer to stop by itself.
func (p *process) ended() error {
	p.w.t.Helper()
	select {
	case <-p.done:
	case <-time.After(bound):
		p.w.t.Fatal("the streamer goes on")
	}
	return p.err
}
