package bench

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/proc"
)

// peer is pg_recvlogical: the least that a client of a slot can do. It reads
// the protocol and writes it to /dev/null, so its time is the walsender's.
type peer struct {
	binary, url, logs string
}

// findPeer finds the program. Any version will do: the protocol is the server's.
func findPeer() (string, error) {
	if path, err := exec.LookPath("pg_recvlogical"); err == nil {
		return path, nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_recvlogical") // the pattern is good
	if len(found) == 0 {
		return "", errors.New("pg_recvlogical is missing, against which the bench measures: install a Postgres client package (on Debian: apt-get install postgresql-client)")
	}
	return slices.Max(found), nil
}

// drain reads slot up to the position end and gives the time that took, the
// program's own start included.
func (p peer) drain(ctx context.Context, slot, publication, end string) (time.Duration, error) {
	began := time.Now()
	child, err := proc.Start(proc.Config{
		Name: "pg_recvlogical", Path: p.binary, Log: filepath.Join(p.logs, "pg_recvlogical.log"),
		Args: []string{
			"--dbname", p.url, "--slot", slot, "--start", "--endpos", end, "--file", "/dev/null",
			"--no-loop", "--fsync-interval", "0",
			"--option", "proto_version=1", "--option", "messages=true", "--option", "publication_names=" + publication,
		},
	})
	if err != nil {
		return 0, err
	}
	if err := child.Wait(ctx); err != nil {
		return 0, errors.Join(err, child.Kill9())
	}
	return time.Since(began), nil
}

// String names it in figures.
func (peer) String() string { return "pg_recvlogical" }

// slotAt makes a slot where the log ends now. The caller drops it with dropSlots.
func (b *bench) slotAt(ctx context.Context, name string) error {
	if _, err := b.conn.Exec(ctx, "select pg_create_logical_replication_slot($1, 'pgoutput')", name); err != nil {
		return fmt.Errorf("make slot %s: %w", name, err)
	}
	b.slots = append(b.slots, name)
	return nil
}

// dropSlot waits until nobody reads the slot: a walsender ends a moment after
// its client.
func (b *bench) dropSlot(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := b.conn.Exec(ctx, "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = $1", name)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("drop slot %s: %w", name, err)
		case <-tick.C:
		}
	}
}

// dropSlots drops the slots that have been made: one that is left behind keeps
// its WAL for all that follow. A bench that is being stopped leaves them to the
// end of its server.
func (b *bench) dropSlots(ctx context.Context) (err error) {
	for _, name := range b.slots {
		if ctx.Err() == nil {
			err = errors.Join(err, b.dropSlot(ctx, name))
		}
	}
	b.slots = nil
	return err
}
