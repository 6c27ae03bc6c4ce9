package replication

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/pgtest"
)

// own is a database on a server that the test may stop.
func own(t *testing.T, version int) *database {
	t.Helper()
	return newDatabase(t, pgtest.New(t, pgtest.Options{Version: version, From: templates[version]}))
}

// stopped stops the server the fast way and says how long that took.
func stopped(t *testing.T, srv *pgtest.Server) time.Duration {
	t.Helper()
	begin := time.Now()
	if err := srv.Signal(pgtest.Fast); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := srv.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	return time.Since(begin)
}

func TestFastShutdownIsPrompt(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		for name, c := range map[string]struct {
			// acking: the ack follows what comes.
			acking bool
			// receiving: somebody calls Receive.
			receiving bool
			// within is generous: a shutdown that waits for its receiver takes for
			// ever, as long as that one answers.
			within time.Duration
			reason error
		}{
			"when everything is acknowledged":    {acking: true, receiving: true, within: 20 * time.Second, reason: ErrServerShutdown},
			"when the ack cannot move":           {receiving: true, within: 40 * time.Second, reason: ErrServerShutdown},
			"when the ring has no room for long": {within: time.Minute, reason: ErrServerShutdown},
		} {
			t.Run(fmt.Sprintf("postgres%d/%s", version, name), func(t *testing.T) {
				t.Parallel()
				d := own(t, version)
				s := d.started(t, d.config())
				execute(t, d.conn, "INSERT INTO t SELECT n, repeat(md5(n::text), 100) FROM generate_series(1, 3000) n")
				confirmed := d.start
				var r *receiver
				if c.receiving {
					r = receiveAll(t, s, c.acking)
					eventually(t, "the rows come", func() bool { return r.commits.Load() == 1 })
				}
				took := stopped(t, d.srv)
				t.Logf("the server was down after %v", took)
				if took > c.within {
					t.Errorf("the shutdown took %v", took)
				}
				if r != nil && !c.acking && r.asked.Load() > int64(took/repeatEvery)+20 {
					t.Errorf("the server was made to ask %d times", r.asked.Load())
				}
				if r == nil {
					r = receiveAll(t, s, false)
				}
				if err := r.ended(t); !errors.Is(err, c.reason) || !Transient(err) {
					t.Errorf("the session ended with %v", err)
				}
				if err := s.Close(t.Context()); err != nil {
					t.Errorf("close: %v", err)
				}
				if err := d.srv.Resume(t.Context()); err != nil {
					t.Fatal(err)
				}
				// Before 17 a shutdown does not write down the slot's last position.
				kept := c.acking && version >= 17
				got := d.slot(t).ConfirmedFlush
				if kept && got < change.LSN(r.end.Load()) || !c.acking && got != confirmed {
					t.Errorf("the slot stands at %s", got)
				}
			})
		}
	}
}

func TestCrashOfTheServerIsTransient(t *testing.T) {
	t.Parallel()
	d := own(t, 15)
	s := d.started(t, d.config())
	r := receiveAll(t, s, true)
	if err := d.srv.Stop(pgtest.Immediate); err != nil {
		t.Fatal(err)
	}
	if err := r.ended(t); !Transient(err) {
		t.Errorf("got %v", err)
	}
	_, err := Open(t.Context(), d.config(), discard())
	if err == nil || !Transient(err) {
		t.Errorf("connecting to nobody: %v", err)
	}
	if err := d.srv.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.started(t, d.config())
}

// A server that lets new connections in is not shutting down, whatever it asks.
func TestProbeThatSucceedsEndsNothing(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, servers[15])
	probes := make(chan struct{}, 10)
	cfg := d.config()
	cfg.Probe = func(context.Context) error { probes <- struct{}{}; return nil }
	s := d.started(t, cfg)
	signal(s.suspect)
	<-probes
	signal(s.suspect)
	<-probes
	if err := s.Err(); err != nil {
		t.Fatalf("the session has ended: %v", err)
	}
}

func TestPromotedStandbyHasAHistory(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(fmt.Sprintf("postgres%d", version), func(t *testing.T) {
			t.Parallel()
			d := own(t, version)
			execute(t, d.conn, "INSERT INTO t VALUES (1, 'a')")
			before, err := d.admin.FlushLSN(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := d.srv.Stop(pgtest.Fast); err != nil {
				t.Fatal(err)
			}
			standby := pgtest.New(t, pgtest.Options{Version: version, From: d.srv.Data(), StandbyOf: "host=127.0.0.1 port=1",
				Settings: map[string]string{"hot_standby": "on"}})
			cfg := d.config()
			cfg.ConnString = standby.URLFor(pgtest.Superuser, "", d.name)
			if _, err := Open(t.Context(), cfg, discard()); !errors.Is(err, ErrInRecovery) || !Transient(err) {
				t.Fatalf("a standby: got %v", err)
			}
			admin, err := NewAdmin(cfg, discard())
			if err != nil {
				t.Fatal(err)
			}
			if f, err := admin.Inspect(t.Context()); err != nil || !f.InRecovery || len(Check(f)) == 0 {
				t.Errorf("facts of a standby: %+v, %v", f, err)
			}
			execute(t, connect(t, standby.URL()), "SELECT pg_promote()")
			s := d.open(t, cfg)
			h, err := s.History(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if h.Current != 2 || s.System().Timeline != 2 || len(h.Ancestors) != 1 || h.Ancestors[0].End <= before {
				t.Fatalf("history %+v of %+v; the old server's end was %s", h, s.System(), before)
			}
			if old, now := h.TimelineOf(before), h.TimelineOf(s.System().WALEnd); old != 1 || now != 2 {
				t.Errorf("timelines %d and %d", old, now)
			}
		})
	}
}
