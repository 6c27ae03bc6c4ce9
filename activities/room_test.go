package activities_test

import (
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
