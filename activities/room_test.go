package activities_test

import (
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"github.com/tidemark-cdc/tidemark/activities"
)

// The second attempt has its turn when the first has ended, and its heartbeats
// say what it waits for. The segment alone is larger than the bound, which
// keeps it from nothing but company.
func TestSegmentsThatAreTooLargeTogetherAreUploadedOneAfterTheOther(t *testing.T) {
	f := newFixture(t)
	f.HeartbeatEvery = time.Millisecond
	f.MaxBytes = f.ref.Bytes - 1
	f.source.block = make(chan struct{})
	done := make(chan error, 2)
	go func() {
		_, err := once(t, t.Context(), f.Upload, f.input())
		done <- err
	}()
	<-f.source.asked

	suite := newSuite()
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(f.Upload)
	waits := make(chan struct{})
	env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
		var p activities.Progress
		if err := details.Get(&p); err == nil && p.Step == activities.StepWait {
			select {
			case <-waits:
			default:
				close(waits)
			}
		}
	})
	go func() {
		_, err := env.ExecuteActivity(f.Upload, f.input())
		done <- err
	}()
	select {
	case <-waits:
		if fetched, _ := f.source.fetches(); fetched != 1 {
			t.Errorf("%d segments were fetched", fetched)
		}
	case <-time.After(time.Minute):
		t.Error("the second attempt does not wait")
	}
	close(f.source.block)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if fetched, _ := f.source.fetches(); fetched != 2 {
		t.Errorf("%d segments were fetched in the end", fetched)
	}
}

// While its object is on the way to the store a segment takes no more room than
// the object has, so that a slow store keeps no processor idle.
func TestASegmentThatIsBeingStoredLeavesRoomForTheNext(t *testing.T) {
	f := newFixture(t)
	rows := changes(5)
	for i := range rows {
		rows[i].Raw = insert(strings.Repeat("x", 1<<20))
	}
	f.source.changes, f.ref = rows, refOf(rows)
	f.MaxBytes = f.ref.Bytes * 3 / 2
	f.store.hold = make(chan struct{})
	first := make(chan error, 1)
	go func() {
		_, err := once(t, t.Context(), f.Upload, f.input())
		first <- err
	}()
	for since := time.Now(); !f.store.holding.Load(); time.Sleep(time.Millisecond) {
		if time.Since(since) > time.Minute {
			t.Fatal("nothing is stored")
		}
	}
	second := make(chan error, 1)
	go func() {
		_, err := once(t, t.Context(), f.Upload, f.input())
		second <- err
	}()
	select {
	case err := <-second:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the second segment waits for the first one's store")
	}
	close(f.store.hold)
	if err := <-first; err != nil {
		t.Error(err)
	}
}

// What comes damaged is not stored: the next attempt fetches it again, and that
// is all that happens.
func TestDamagedRowsAreFetchedAgain(t *testing.T) {
	f := newFixture(t)
	whole := f.source.changes
	damaged := changes(5)
	damaged[3].Raw[12] ^= 1
	f.source.changes = damaged
	_, err := once(t, t.Context(), f.Upload, f.input())
	wantError(t, err, activities.RowsDiffer, "nothing was stored, and they are fetched again")
	if f.store.puts != 0 {
		t.Error("damaged rows were stored")
	}
	f.source.changes = whole
	if out, err := once(t, t.Context(), f.Upload, f.input()); err != nil || out.Existed {
		t.Errorf("%+v, %v", out, err)
	}
}
