package streamer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/streamer/ring"
)

// How often the lake's record is written at most: under load, and when the ack
// moves only because the database is quiet. When every change is finished, it is
// written at once: no other follows soon, and a person may be waiting for it.
const (
	recordEvery     = time.Second
	idleRecordEvery = 10 * time.Second
)

// keeper writes the lake's own record of the ack, and only then lets the
// session report it: what Postgres may forget, the lake has written down.
type keeper struct {
	l *life
	// rec is the record as it stands in the lake, etag its version; etag is
	// empty until the record exists. Only keep's goroutine writes them; mu is
	// for those who read rec meanwhile.
	mu   sync.Mutex
	rec  lake.AckRecord
	etag string
	// written is when rec was written by this process.
	written time.Time
	// writing is the write that is under way, nil while none is; guarded by mu.
	writing *Recording
	// asked wakes the keeper when the server wants a reply, so that an idle
	// advance need not wait.
	asked signal
	// finals carries the request of a graceful stop to record the ack at once;
	// the answer goes back on the channel that it carries.
	finals chan chan error
}

// keep runs until ctx ends.
func (k *keeper) keep(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	urgent := false
	for {
		wait := k.step(ctx, urgent)
		if wait.err != nil {
			return wait.err
		}
		urgent = false
		timer.Reset(wait.again)
		select {
		case <-k.l.buf.acked:
		case <-k.asked:
			urgent = true
		case <-timer.C:
		case done := <-k.finals:
			var err error
			if ack := k.l.ack(); ack.LSN > k.rec.Ack {
				err = k.record(ctx, ack)
			}
			done <- err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// last records what a graceful stop has left to record. It is called when keep
// may still be running, and so asks keep to do it and waits.
func (k *keeper) last(ctx context.Context) error {
	done := make(chan error, 1)
	select {
	case k.finals <- done:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

type keepStep struct {
	again time.Duration
	err   error
}

// step records the ring's ack if that is due, and says when to look again.
func (k *keeper) step(ctx context.Context, urgent bool) keepStep {
	ack := k.l.ack()
	if ack.LSN <= k.rec.Ack {
		return keepStep{again: time.Hour}
	}
	every := recordEvery
	switch {
	case ack.Last != k.rec.Last && k.l.buf.settled(), ack.Last == k.rec.Last && urgent:
		every = 0
	case ack.Last == k.rec.Last:
		every = idleRecordEvery
	}
	if left := every - time.Since(k.written); left > 0 {
		return keepStep{again: left}
	}
	return keepStep{again: time.Hour, err: k.record(ctx, ack)}
}

// record writes ack into the lake, trying until ctx ends, and then lets it be
// reported.
func (k *keeper) record(ctx context.Context, ack ring.Ack) error {
	rec := lake.AckRecord{
		Last:     ack.Last,
		LastTime: ack.Time.UTC(),
		Ack:      ack.LSN,
		Timeline: k.l.history().TimelineOf(ack.LSN - 1),
		Writer:   k.l.at.Instance,
		Seq:      k.rec.Seq + 1,
		At:       time.Now().UTC().Truncate(time.Millisecond),
	}
	begun := time.Now()
	k.note(&Recording{Since: begun})
	defer k.note(nil)
	for wait := time.Second; ; wait = min(2*wait, 30*time.Second) {
		etag, err := k.l.lake.WriteAck(ctx, rec, k.etag)
		switch {
		case err == nil:
			k.mu.Lock()
			k.rec, k.etag, k.written = rec, etag, time.Now()
			k.mu.Unlock()
			k.l.reported(rec.Ack)
			k.l.traces.acknowledged(rec.Last)
			return nil
		case errors.Is(err, lake.ErrPrecondition):
			return newLife("another process has written the lake's record of the ack: %v", err)
		case ctx.Err() != nil:
			return ctx.Err()
		}
		k.note(&Recording{Since: begun, Error: err.Error()})
		k.l.log.Warn("the lake's record of the ack cannot be written; the ack waits", "ack", rec.Ack, "error", err, "again_in", wait)
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// Recording is a write of the lake's record of the ack that is under way. It is
// tried until it succeeds.
type Recording struct {
	// Since is when the first attempt began.
	Since time.Time `json:"since"`
	// Error is that of the last attempt that has ended; empty before.
	Error string `json:"error,omitempty"`
}

// note shows w in the status.
func (k *keeper) note(w *Recording) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.writing = w
}

// underWay is the write that goes on; nil without one.
func (k *keeper) underWay() *Recording {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.writing
}

// recorded is the record as it stands in the lake.
func (k *keeper) recorded() lake.AckRecord {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.rec
}
