package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"log/slog"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
)

// Options say what world to make.
type Options struct {
	// Postgres is 15 or 18.
	Postgres int
	// Binary is the tidemark program.
	Binary string
	// Dir is the folder of everything; empty is a temporary one that Close
	// removes.
	Dir string
	// Progress, when set, is told what is going on, from any goroutine.
	Progress func(string)
}

// World is the servers that pipelines run on, and the proxies before them.
type World struct {
	opt      Options
	stack    *stack.Stack
	temporal *stack.Relay
	postgres *stack.Relay
	clock    *clock
	client   client.Client

	// servers guards starting and stopping the stack's servers, which are not
	// safe for concurrent use.
	servers sync.Mutex
	runs    int
}

// NewWorld starts the servers.
func NewWorld(ctx context.Context, opt Options) (_ *World, err error) {
	if opt.Progress == nil {
		opt.Progress = func(string) {}
	}
	w := &World{opt: opt}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	if w.clock, err = newClock(); err != nil {
		return nil, err
	}
	w.stack, err = stack.Start(ctx, stack.Options{
		Dir:      opt.Dir,
		Faults:   true,
		Temporal: stack.TemporalOptions{NoUI: true},
		Postgres: stack.PostgresOptions{
			Version: opt.Postgres, Env: w.clock.env(),
			Settings: map[string]string{
				// A receiver that is gone without a word is found out soon.
				"wal_sender_timeout": "8s",
				"max_wal_size":       "4GB",
				"autovacuum":         "off",
			},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("start the servers: %w", err)
	}
	if w.temporal, err = stack.NewRelay(w.stack.Temporal.Address()); err != nil {
		return nil, err
	}
	u, err := url.Parse(w.stack.Postgres.URL())
	if err != nil {
		return nil, err
	}
	if w.postgres, err = stack.NewRelay(u.Host); err != nil {
		return nil, err
	}
	w.client, err = client.NewLazyClient(client.Options{
		HostPort: w.stack.Temporal.Address(), Namespace: w.stack.Temporal.Namespace(),
		Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		return nil, fmt.Errorf("make a client of Temporal: %w", err)
	}
	return w, nil
}

// Dir is the folder with all data and logs.
func (w *World) Dir() string { return w.stack.Dir() }

// Close ends the servers, and removes a temporary folder.
func (w *World) Close() error {
	var errs []error
	if w.client != nil {
		w.client.Close()
	}
	for _, p := range []*stack.Relay{w.temporal, w.postgres} {
		if p != nil {
			p.Close()
		}
	}
	if w.stack != nil {
		errs = append(errs, w.stack.Close())
	}
	if w.clock != nil {
		errs = append(errs, w.clock.remove())
	}
	return errors.Join(errs...)
}

// url is the URL of a database; through is what tidemark uses, with the proxy
// between, else it is the direct way.
func (w *World) url(database string, through bool) string {
	u, err := url.Parse(w.stack.Postgres.URL())
	if err != nil {
		panic(err) // it is our own, and has been parsed before
	}
	u.Path = "/" + database
	if through {
		u.Host = w.postgres.Address()
	}
	return u.String()
}

// exec runs statements in a database, on a connection of their own.
func (w *World) exec(ctx context.Context, database string, statements ...string) error {
	conn, err := pgx.Connect(ctx, w.url(database, false))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// clock is Postgres' clock: the machine's and an offset. (libfaketime reads the
// file anew every second.)
type clock struct {
	dir     string
	library string
}

func newClock() (*clock, error) {
	var found []string
	for _, p := range []string{"/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib/faketime/libfaketime.so.1", "/usr/local/lib/faketime/libfaketime.so.1"} {
		more, _ := filepath.Glob(p)
		found = append(found, more...)
	}
	if len(found) == 0 {
		return nil, errors.New("libfaketime, which makes Postgres' clock jump, is not installed: run scripts/bootstrap")
	}
	dir, err := os.MkdirTemp("", "tidemark-clock-")
	if err != nil {
		return nil, fmt.Errorf("make the clock's folder: %w", err)
	}
	c := &clock{dir: dir, library: found[0]}
	// The user that Postgres runs as has to read it.
	if err := errors.Join(os.Chmod(dir, 0o755), c.set("+0")); err != nil {
		return nil, errors.Join(err, c.remove())
	}
	return c, nil
}

// set sets the offset, such as +26h or -90s.
func (c *clock) set(offset string) error {
	file := filepath.Join(c.dir, "offset")
	if err := os.WriteFile(file+".next", []byte(offset+"\n"), 0o644); err != nil {
		return fmt.Errorf("set the clock: %w", err)
	}
	return os.Rename(file+".next", file)
}

func (c *clock) env() []string {
	return []string{
		"LD_PRELOAD=" + c.library, "FAKETIME_TIMESTAMP_FILE=" + filepath.Join(c.dir, "offset"),
		"FAKETIME_CACHE_DURATION=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", "TZ=UTC",
	}
}

func (c *clock) remove() error { return os.RemoveAll(c.dir) }
