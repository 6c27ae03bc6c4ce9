package streamer

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/pgtest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

func (w *world) pause() {
	w.t.Helper()
	if _, made, err := w.lake.WritePause(w.t.Context(), lake.Pause{By: "ann", Reason: "a test", Since: time.Now()}); err != nil || !made {
		w.t.Fatal(made, err)
	}
}

func (w *world) resume() {
	w.t.Helper()
	if _, err := w.lake.RemovePause(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) started() int {
	w.temporal.mu.Lock()
	defer w.temporal.mu.Unlock()
	return w.temporal.starts
}

// A pause lasts through the segment in flight, a full ring, and another process.
func TestAPausedPipelineDispatchesNothingAndFinishesWhatIsInFlight(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	w.exec("ALTER ROLE postgres SET wal_sender_timeout = '2s'") // feedback is due every 500 ms
	w.cfg.pauseEvery = 20 * time.Millisecond
	w.cfg.Ring.MaxChanges = 20
	s := w.start()
	w.temporal.hold(func(segment.Ref) bool { return true })
	w.insert(5)
	w.until("the segment runs", func() bool { return len(w.temporal.running()) == 1 })
	ref := w.temporal.running()[0]

	w.pause()
	w.until("the pause is seen", func() bool { return s.Status().Paused != nil })
	before := w.started()
	w.temporal.hold(func(segment.Ref) bool { return false })
	w.until("the ack follows the segment in flight", func() bool { return w.confirmed() > ref.Last.LSN })
	stands := w.confirmed()
	for range 10 {
		w.insert(5)
	}
	w.until("the ring is full", func() bool { return s.Status().Ring.Full })
	full := s.Status()
	w.until("status updates go on", func() bool { return s.Status().Reported.After(full.Reported.Add(time.Second)) })
	if st := s.Status(); st.Received != full.Received || !st.Connected || st.Paused.By != "ann" || len(st.InFlight) > 0 {
		t.Errorf("it was %+v, and is %+v", full, st)
	}

	// A stop has nothing to wait for, and the next process begins with a pause.
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s = w.start()
	w.until("the ring is full again", func() bool { return s.Status().Ring.Full })
	if now := w.started(); now != before {
		t.Errorf("%d segments were started within the pause", now-before)
	}
	if now := w.confirmed(); now != stands {
		t.Errorf("the slot stands at %s, and has stood at %s", now, stands)
	}
	w.resume()
	w.caughtUp()
	w.checkRows()
	if s.Status().Paused != nil {
		t.Error("it is still said to be paused")
	}
}

func TestAQuietPausedPipelineHoldsNoWAL(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	w.pause()
	s := w.start()
	w.until("it streams", func() bool { return s.Status().Connected })
	w.unpublished()
	w.caughtUp()
	if s.Status().Paused == nil {
		t.Error("it is not paused")
	}
}

func TestAFastShutdownWithinAPauseIsNotHeldUp(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	w.pause()
	s := w.start()
	w.insert(5)
	w.until("rows wait", func() bool { return s.Status().Ring.Waiting.Changes == 5 })
	begun := time.Now()
	if err := w.pg.Stop(pgtest.Fast); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > 40*time.Second {
		t.Errorf("it has taken %s", took)
	}
	if err := w.pg.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.connect()
	w.resume()
	w.caughtUp()
	w.checkRows()
}

// forgetful is a lake that cannot say whether the pipeline is paused, until it
// is told to.
type forgetful struct {
	*lake.Lake
	asked chan struct{}
	tell  chan struct{}
}

func (f *forgetful) ReadPause(ctx context.Context) (*lake.Pause, error) {
	select {
	case <-f.tell:
		return f.Lake.ReadPause(ctx)
	default:
	}
	select {
	case f.asked <- struct{}{}:
	default:
	}
	return nil, errors.New("the store does not answer")
}

// A lake that does not answer is no lake without a pause.
func TestNothingIsDispatchedBeforeThePauseIsKnown(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	w.pause()
	f := &forgetful{Lake: w.lake, asked: make(chan struct{}, 1), tell: make(chan struct{})}
	w.insert(15)
	s := w.startWith(f)
	for range 2 {
		<-f.asked
	}
	close(f.tell)
	w.until("rows wait", func() bool { return s.Status().Ring.Waiting.Changes == 15 })
	if n := w.started(); n > 0 {
		t.Errorf("%d segments were started", n)
	}
}
