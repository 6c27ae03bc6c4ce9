package activities

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
)

const defaultHeartbeatEvery = 2 * time.Second

// attempt is one attempt of one activity.
type attempt struct {
	in        UploadInput
	action    string
	number    int32
	lake      Lake
	source    sourceFunc
	encode    encoder
	encodeRaw encoder
	observer  Observer
	tracer    Tracer // nil: none
	log       *slog.Logger

	mu       sync.Mutex
	progress Progress // guarded by mu
	// begun is when the attempt began, for tracer. stepping, steps and taken are
	// only touched by the attempt itself.
	begun    time.Time
	stepping stepping
	steps    steps
	room     *room // nil: no bound
	taken    int64 // of room

	stop    chan struct{}
	stopped sync.WaitGroup
}

func (a *Activities) begin(ctx context.Context, action string, in UploadInput) *attempt {
	info := activity.GetInfo(ctx)
	t := &attempt{
		in: in, action: action, number: info.Attempt,
		lake: a.Lake, source: a.Source, encode: a.rows, encodeRaw: a.raw,
		observer: a.observed(), tracer: a.Tracer, room: a.shared(), begun: time.Now(),
		log:  a.Logger.With("pipeline", in.Ref.Pipeline, "segment", in.Ref.First.String(), "attempt", info.Attempt),
		stop: make(chan struct{}),
	}
	every := a.HeartbeatEvery
	if every <= 0 {
		every = defaultHeartbeatEvery
	}
	if info.HeartbeatTimeout > 0 {
		every = min(every, info.HeartbeatTimeout/3)
	}
	t.stopped.Add(1)
	go t.beat(ctx, every)
	return t
}

// end stops the heartbeats, waits for them, and gives its room back.
func (t *attempt) end() {
	t.stepping.move(t.observer, "", time.Now())
	close(t.stop)
	t.stopped.Wait()
	if t.taken > 0 {
		t.room.free.Release(t.taken)
	}
}

// beat reports progress until end, however long a single fetch or PUT takes: it
// is the only way by which Temporal sees that the worker lives, and by which
// the attempt learns that it was canceled, paused or reset. A step that hangs
// for good is ended by the start-to-close bound.
func (t *attempt) beat(ctx context.Context, every time.Duration) {
	defer t.stopped.Done()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-t.stop:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
			t.mu.Lock()
			progress := t.progress
			t.mu.Unlock()
			activity.RecordHeartbeat(ctx, progress)
		}
	}
}

// enter notes for the next heartbeat what is being done.
func (t *attempt) enter(step Step, rows, bytes int64) {
	now := time.Now()
	t.stepping.move(t.observer, step, now)
	if t.tracer != nil {
		t.steps.enter(step, rows, bytes, now)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.progress = Progress{Step: step, Rows: rows, Bytes: bytes}
}
