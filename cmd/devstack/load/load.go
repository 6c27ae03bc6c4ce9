package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/tally"
)

// Config says how to write. Only URL is required.
type Config struct {
	// URL of the database that Create was called for.
	URL string
	// Sessions write at once; 0 is 4.
	Sessions int
	// Rate is about how many row changes per second all sessions together
	// make; 0 is as many as they can.
	Rate int
	// Largest bounds the rows of a transaction; 0 is 5,000.
	Largest int
	// Seed makes the choice of transactions repeatable.
	Seed uint64
	// First is the number of the first session; each number owns the rows that
	// it writes, so a second load of the same tables starts at another one.
	First int
}

// Load is a running load.
type Load struct {
	cfg    Config
	stop   chan struct{} // closed by Stop
	once   sync.Once
	cancel context.CancelFunc
	group  sync.WaitGroup

	transactions, rolledBack atomic.Int64

	mu     sync.Mutex
	counts tally.Counts
	errs   []error
}

// Start starts the sessions. They go on through restarts of Postgres until Stop
// is called or ctx ends.
func Start(ctx context.Context, cfg Config) *Load {
	if cfg.Sessions == 0 {
		cfg.Sessions = 4
	}
	if cfg.Largest == 0 {
		cfg.Largest = 5000
	}
	ctx, cancel := context.WithCancel(ctx)
	l := &Load{cfg: cfg, stop: make(chan struct{}), cancel: cancel, counts: tally.Counts{}}
	for i := range cfg.Sessions {
		s := &session{
			load: l,
			base: int64(cfg.First+i+1) * 1_000_000_000_000,
			rng:  rand.New(rand.NewPCG(cfg.Seed, uint64(cfg.First+i))),
		}
		l.group.Go(func() {
			if err := s.run(ctx); err != nil {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.errs = append(l.errs, fmt.Errorf("load session %d: %w", cfg.First+i, err))
			}
		})
	}
	return l
}

// Stop lets each session end its transaction, waits for them and returns what
// was committed. An error means that the counts may be wrong.
func (l *Load) Stop() (tally.Counts, error) {
	l.once.Do(func() { close(l.stop) })
	l.group.Wait()
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts.Clone(), errors.Join(l.errs...)
}

// Err says which sessions have given up, nil while all go on.
func (l *Load) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.errs...)
}

// Counts are what is committed so far.
func (l *Load) Counts() tally.Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts.Clone()
}

// Transactions counts those that were committed and those that were rolled back.
func (l *Load) Transactions() (committed, rolledBack int64) {
	return l.transactions.Load(), l.rolledBack.Load()
}

func (l *Load) committed(c tally.Counts) {
	l.transactions.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.Add(c)
}

func (l *Load) stopping() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}
