package main

import (
	"context"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// patientAdmin is an Admin that says what a slot waits for while it is made.
type patientAdmin struct {
	*replication.Admin
	progress *progress
}

func (a patientAdmin) CreateSlot(ctx context.Context, name string, failover bool) (change.LSN, error) {
	return makeSlot(ctx, a.Admin, a.progress, name, failover)
}

// slotMaker is what makeSlot needs of Postgres; *replication.Admin implements
// it.
type slotMaker interface {
	CreateSlot(ctx context.Context, name string, failover bool) (change.LSN, error)
	SlotWaits(ctx context.Context, name string) ([]replication.Transaction, error)
}

// makeSlot makes a slot, for which Postgres waits until every transaction has
// ended that is open now: for ever, if one is forgotten.
func makeSlot(ctx context.Context, pg slotMaker, p *progress, name string, failover bool) (change.LSN, error) {
	p.doing("making the replication slot %q", name)
	looking, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Before the first time that something is said.
		next := time.NewTimer(progressEvery / 2)
		defer next.Stop()
		for {
			select {
			case <-looking.Done():
				return
			case <-next.C:
			}
			next.Reset(progressEvery)
			if waits, err := pg.SlotWaits(looking, name); err == nil && len(waits) > 0 {
				p.doing("making the replication slot %q: Postgres waits for %s to end", name, waits[0])
			}
		}
	}()
	defer func() { stop(); <-done }()
	return pg.CreateSlot(ctx, name, failover)
}
