package streamer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/pgtest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// outage is a store that can be switched off.
type outage struct {
	lake.Store
	down atomic.Bool
}

func (o *outage) err() error {
	if o.down.Load() {
		return errors.New("the store is down")
	}
	return nil
}

func (o *outage) Put(ctx context.Context, key string, body []byte, cond lake.Condition) (string, error) {
	if err := o.err(); err != nil {
		return "", err
	}
	return o.Store.Put(ctx, key, body, cond)
}

func (o *outage) Get(ctx context.Context, key string) ([]byte, string, error) {
	if err := o.err(); err != nil {
		return nil, "", err
	}
	return o.Store.Get(ctx, key)
}

func (o *outage) GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	if err := o.err(); err != nil {
		return nil, err
	}
	return o.Store.GetRange(ctx, key, offset, length)
}

func (o *outage) List(ctx context.Context, prefix, after string) iter.Seq2[lake.Info, error] {
	if err := o.err(); err != nil {
		return func(yield func(lake.Info, error) bool) { yield(lake.Info{}, err) }
	}
	return o.Store.List(ctx, prefix, after)
}

// letsGo is how long a fast shutdown of Postgres may take, whatever is the
// matter with the pipeline.
const letsGo = 10 * time.Second

// The lake cannot be reached, so nothing can be confirmed, and a fast shutdown
// of Postgres waits for its receivers. The streamer lets it go; also when it
// reads nothing any more for want of room.
func TestAFastShutdownIsPromptThoughTheLakeIsDown(t *testing.T) {
	for version, cases := range map[int]map[string]int{
		15: {"rows in flight": 30, "a full ring": 30_000},
		18: {"a full ring": 30_000, "nothing but other tables' rows": 0},
	} {
		for name, rows := range cases {
			t.Run(fmt.Sprintf("postgres%d/%s", version, name), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, pgtest.Options{Version: version})
				store := &outage{Store: w.store}
				w.lake = lake.New("file:///lake", store)
				s := w.start(func(c *Config) { c.Ring.MaxChanges = 1000 })
				w.insert(1)
				w.caughtUp()
				w.temporal.hold(func(segment.Ref) bool { return true })
				store.down.Store(true)
				before := w.confirmed()
				if rows > 0 {
					w.insert(rows)
				}
				w.unpublished()
				w.until("the rows are on their way", func() bool {
					st := s.Status()
					return rows == 0 || len(w.temporal.running()) >= min(rows/10, 64) && (rows < 1000 || st.Ring.Full)
				})
				// A busy machine may be late; a server that is held is so each time.
				for try := 1; ; try++ {
					begin := time.Now()
					w.must(w.pg.Stop(pgtest.Fast))
					took := time.Since(begin)
					t.Logf("a fast shutdown took %s", took.Round(time.Millisecond))
					w.must(w.pg.Resume(t.Context()))
					w.connect()
					if took <= letsGo {
						break
					}
					if try == 3 {
						t.Fatalf("fast shutdowns took more than %s", letsGo)
					}
					w.until("the streamer streams again", func() bool { return s.Status().Connected })
				}
				if got := w.confirmed(); rows > 0 && got > before {
					t.Errorf("the slot moved from %s to %s, and nothing was in the lake", before, got)
				}
				store.down.Store(false)
				w.temporal.hold(func(segment.Ref) bool { return false })
				w.caughtUp()
				w.must(s.stop())
				w.checkRows()
			})
		}
	}
}

// What is written to tables that are not published holds no WAL back, while it
// is written as well as afterwards, whatever wal_sender_timeout is: with 0 the
// server never asks for a reply by itself.
func TestUnpublishedWritesPinNoWAL(t *testing.T) {
	for version, timeouts := range map[int][]string{15: {"60s"}, 18: {"0"}} {
		for _, timeout := range timeouts {
			t.Run(fmt.Sprintf("postgres%d/wal_sender_timeout=%s", version, timeout), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, pgtest.Options{Version: version, Settings: map[string]string{"wal_sender_timeout": timeout}})
				w.start()
				w.insert(1)
				w.caughtUp()
				w.unpublished() // makes the table
				from := w.confirmed()
				db, err := pgx.Connect(t.Context(), w.pg.URL())
				w.must(err)
				ctx, cancel := context.WithCancel(t.Context())
				written := make(chan struct{})
				go func() {
					defer close(written)
					defer db.Close(context.WithoutCancel(ctx))
					for ctx.Err() == nil {
						_, _ = db.Exec(ctx, "INSERT INTO quiet SELECT repeat('x', 1000) FROM generate_series(1, 5000)")
					}
				}()
				w.until("100 MB of WAL are confirmed while more is written", func() bool { return w.confirmed() > from+100<<20 })
				cancel()
				<-written
				w.caughtUp()
				w.exec("CHECKPOINT") // restart_lsn moves over what a snapshot in the WAL says is over
				w.until("the server keeps no more than a few files", func() bool {
					return w.count("SELECT (pg_current_wal_lsn() - restart_lsn)::bigint FROM pg_replication_slots") < 64<<20
				})
				w.insert(3)
				w.caughtUp()
				w.checkRows()
			})
		}
	}
}

// A connection outlasts a wal_sender_timeout of one second, also with a full
// ring, when nothing is read.
func TestAShortWALSenderTimeoutIsKept(t *testing.T) {
	for _, version := range []int{15, 18} {
		t.Run(fmt.Sprintf("postgres%d", version), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, pgtest.Options{Version: version, Settings: map[string]string{"wal_sender_timeout": "1s"}})
			s := w.start(func(c *Config) { c.Ring.MaxChanges = 1000 })
			w.insert(1)
			w.caughtUp()
			w.temporal.hold(func(segment.Ref) bool { return true })
			w.insert(30_000)
			w.until("the ring is full", func() bool { return s.Status().Ring.Full })
			// A busy machine may be late once; a streamer that is always late never
			// has a connection for so long.
			var pid int
			var since time.Time
			w.until("one connection lasts for six times the timeout", func() bool {
				if now := w.count("SELECT coalesce(max(active_pid), 0) FROM pg_replication_slots"); now != pid || pid == 0 {
					pid, since = now, time.Now()
				}
				return time.Since(since) > 6*time.Second
			})
			w.temporal.hold(func(segment.Ref) bool { return false })
			w.caughtUp()
			w.must(s.stop())
			w.checkRows()
		})
	}
}
