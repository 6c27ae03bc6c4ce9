package chaos

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
)

// sampler looks, several times a second, at what the slot has confirmed, and
// then at which objects the lake has. Objects never go away. So if an object
// that holds a change below a confirmed LSN was not there when the LSN was seen,
// the ack was ahead of the lake: Postgres would not have sent that change again.
type sampler struct {
	of *Run

	mu   sync.Mutex
	acks []sample
	// first is the number of the sample that saw the object first.
	first map[string]int
	// Longest time that the ack stood still with something to acknowledge.
	stall   time.Duration
	stallAt time.Time
	moved   time.Time
}

type sample struct {
	ack change.LSN
	at  time.Time
}

func newSampler(r *Run) *sampler {
	return &sampler{of: r, first: map[string]int{}, moved: time.Now()}
}

// look takes one sample.
func (s *sampler) look(ctx context.Context, conn *pgx.Conn) error {
	var ack string
	var behind bool
	err := conn.QueryRow(ctx, `select confirmed_flush_lsn::text, confirmed_flush_lsn < pg_current_wal_flush_lsn()
		from pg_replication_slots where slot_name = $1`, s.of.slot).Scan(&ack, &behind)
	if err != nil {
		return err
	}
	lsn, err := change.ParseLSN(ack)
	if err != nil {
		return err
	}
	// After the ack was read: what is there now was there then or has come since.
	keys, err := objects(s.of.lake.Folder())
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if n := len(s.acks); n == 0 || s.acks[n-1].ack != lsn || !behind {
		s.moved = now
	}
	if d := now.Sub(s.moved); d > s.stall {
		s.stall, s.stallAt = d, now
	}
	for _, k := range keys {
		if _, ok := s.first[k]; !ok {
			s.first[k] = len(s.acks)
		}
	}
	s.acks = append(s.acks, sample{lsn, now})
	return nil
}

// sample samples until stopped closes. While Postgres is down there is nothing
// to see.
func (s *sampler) sample(stopped <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { <-stopped; cancel() }()
	var conn *pgx.Conn
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stopped:
			if conn != nil {
				conn.Close(context.Background())
			}
			return
		case <-tick.C:
		}
		if conn == nil || conn.IsClosed() {
			conn, _ = pgx.Connect(ctx, s.of.world.url(s.of.database, false))
		}
		if conn != nil {
			_ = s.look(ctx, conn)
		}
	}
}

// ack is the LSN seen last.
func (s *sampler) ack() change.LSN {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.acks) == 0 {
		return 0
	}
	return s.acks[len(s.acks)-1].ack
}

// longest is the longest time that the ack stood still, and when it ended.
func (s *sampler) longest() (time.Duration, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stall, s.stallAt
}

// ahead has a line for each object that came after an ack that covers its first
// change. Called when the lake is complete.
func (s *sampler) ahead() ([]string, int, error) {
	keys, err := objects(s.of.lake.Folder())
	if err != nil {
		return nil, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	for _, k := range keys {
		parts, err := lake.ParseKey(k)
		if err != nil {
			return nil, 0, err
		}
		seen, ok := s.first[k]
		if !ok {
			seen = len(s.acks)
		}
		for _, a := range s.acks[:seen] {
			if a.ack > parts.First.LSN {
				lines = append(lines, fmt.Sprintf("at %s the slot had confirmed %s, but %s was not in the lake", a.at.UTC().Format(time.TimeOnly), a.ack, k))
				break
			}
		}
	}
	return lines, len(s.acks), nil
}

// objects are the keys of the segments' objects in a lake's folder, the
// quarantined ones too.
func objects(folder string) (keys []string, err error) {
	for _, pattern := range []string{"[0-9]*/*/*/*.parquet", "_quarantine/*/*/*/*.parquet"} {
		files, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			key, err := filepath.Rel(folder, f)
			if err != nil {
				return nil, err
			}
			keys = append(keys, filepath.ToSlash(key))
		}
	}
	return keys, nil
}
