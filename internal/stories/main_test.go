package stories

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/internal/leaktest"
	"github.com/tidemark-cdc/tidemark/internal/pgtest"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// versions are the ends of the supported range.
var versions = []int{15, 18}

// servers are shared by all stories; each has a database of its own.
var servers = map[int]*pgtest.Server{}

// bound is how long a test waits for something that must happen.
const bound = 2 * time.Minute

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	defer func() {
		for _, srv := range servers {
			if err := srv.Close(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}
		if err := leaktest.Find(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}()
	for _, v := range versions {
		srv, err := pgtest.Start(context.Background(), pgtest.Options{Version: v, Settings: map[string]string{
			"max_prepared_transactions": "20", "max_replication_slots": "100", "max_wal_senders": "40"}})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		servers[v] = srv
	}
	return m.Run()
}

var serial atomic.Int64

// story is a database with a publication and a slot, a session that tells the
// story, and what has to come out of it.
type story struct {
	*testing.T
	version int
	url     string
	slot    string
	// publications are those that are read: one that is called like the slot.
	publications []string
	// db tells the story. Its settings are the pinned ones, so nothing but
	// pg_catalog is on its search path.
	db    *pgx.Conn
	admin *replication.Admin

	// messages and localOnly are the settings of the pipeline.
	messages, localOnly bool
	// viaRoot says that the publication publishes partitions as their root.
	viaRoot bool
	// only names the columns that are published of a table; without an entry
	// all are.
	only map[string][]string

	live *reader
	// later are further slots, made while the story was told.
	later []string
	// told has a line for each change that was committed, in the order of the
	// commits; open those of the transaction that db is in.
	told, open []string
	inside     bool
}

// tell tells a story on each version. publication is what follows CREATE
// PUBLICATION name; before has statements that come before it.
func tell(t *testing.T, publication string, before []string, story func(s *story)) {
	t.Parallel()
	for _, v := range versions {
		t.Run(fmt.Sprint("postgres", v), func(t *testing.T) {
			t.Parallel()
			s := newStory(t, v)
			s.exec(before...)
			s.exec("CREATE PUBLICATION " + s.slot + " " + publication)
			story(s)
			s.check()
		})
	}
}

func newStory(t *testing.T, version int) *story {
	t.Helper()
	s := &story{T: t, version: version, slot: fmt.Sprint("story", serial.Add(1)), only: map[string][]string{}}
	s.publications = []string{s.slot}
	srv := servers[version]
	s.url = srv.URLFor(pgtest.Superuser, "", s.slot)
	root := s.connect(srv.URL())
	if _, err := root.Exec(t.Context(), "CREATE DATABASE "+s.slot); err != nil {
		t.Fatal(err)
	}
	s.db = s.connect(s.url)
	var err error
	if s.admin, err = replication.NewAdmin(s.config(s.slot), quiet); err != nil {
		t.Fatal(err)
	}
	if _, err := s.admin.CreateSlot(t.Context(), s.slot, false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.dropSlot(s.slot) })
	return s
}

// config is that of a reader of a slot.
func (s *story) config(slot string) replication.Config {
	return replication.Config{ConnString: s.url, Slot: slot, Publications: s.publications}
}

// joins makes a slot here: who reads from it, as after a restart, has not heard
// what was announced before. What it reads has to be the rest of what the others
// read, to the byte.
func (s *story) joins() {
	s.Helper()
	slot := fmt.Sprintf("%s_later%d", s.slot, len(s.later))
	if _, err := s.admin.CreateSlot(s.Context(), slot, false); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { s.dropSlot(slot) })
	s.later = append(s.later, slot)
}

// dropSlot waits for the server to notice that the slot's reader is gone.
func (s *story) dropSlot(slot string) {
	deadline := time.Now().Add(bound)
	for {
		_, err := s.admin.DropSlot(context.Background(), slot)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.Errorf("drop the slot: %v", err)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// connect opens a session with the pinned settings.
func (s *story) connect(url string) *pgx.Conn {
	s.Helper()
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		s.Fatal(err)
	}
	for name, value := range replication.PinnedSettings() {
		cfg.RuntimeParams[name] = value
	}
	// Tables change their columns, and statements come several at once.
	cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	conn, err := pgx.ConnectConfig(s.Context(), cfg)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}
