package activities_test

import (
	"context"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/activities"
	"github.com/tidemark-cdc/tidemark/internal/lake"
)

// replay runs Replay as activityFunc wants it.
func (f *fixture) replay(ctx context.Context, in activities.UploadInput) (activities.UploadResult, error) {
	return f.Replay(ctx, activities.ReplayInput{Version: in.Version, Ref: in.Ref})
}

// putAside puts the fixture's segment into quarantine.
func (f *fixture) putAside(t *testing.T) {
	t.Helper()
	if out, err := once(t, t.Context(), f.Quarantine, f.input()); err != nil || !out.Quarantined {
		t.Fatalf("%+v, %v", out, err)
	}
}

func (f *fixture) has(t *testing.T, key string, want bool) {
	t.Helper()
	_, err := f.store.Memory.Head(t.Context(), key)
	if got := err == nil; got != want {
		t.Errorf("%s is there: %v, want %v", key, got, want)
	}
}

func TestReplayMovesTheRowsToTheirPlace(t *testing.T) {
	// What the upload would have stored.
	want := newFixture(t)
	if _, err := once(t, t.Context(), want.Upload, want.input()); err != nil {
		t.Fatal(err)
	}
	uploaded, _, err := want.store.Get(t.Context(), lake.Key(want.ref))
	if err != nil {
		t.Fatal(err)
	}

	f := newFixture(t)
	f.putAside(t)
	out, err := once(t, t.Context(), f.replay, f.input())
	if err != nil || out.Existed || out.Quarantined || len(out.Objects) != 1 || out.Objects[0].Key != lake.Key(f.ref) {
		t.Fatalf("%+v, %v", out, err)
	}
	got, _, err := f.store.Get(t.Context(), lake.Key(f.ref))
	if err != nil || string(got) != string(uploaded) {
		t.Errorf("the object is not what an upload stores: %d and %d bytes, %v", len(got), len(uploaded), err)
	}
	f.has(t, lake.QuarantineKey(f.ref), false)
	if out, err = once(t, t.Context(), f.replay, f.input()); err != nil || !out.Existed {
		t.Errorf("replayed again: %+v, %v", out, err)
	}
}

func TestAReplayThatWasBrokenOffIsFinished(t *testing.T) {
	for name, breaks := range map[string]func(*store){
		"before the rows are stored": func(s *store) { s.putErr = storeFailure(lake.Unreachable, 0) },
		"the answer is lost":         func(s *store) { s.putErr, s.lost = storeFailure(lake.Unreachable, 0), true },
		"before the removal":         func(s *store) { s.removeErr = storeFailure(lake.Denied, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.putAside(t)
			breaks(f.store)
			if _, err := once(t, t.Context(), f.replay, f.input()); err == nil {
				t.Fatal("it was not broken off")
			}
			f.has(t, lake.QuarantineKey(f.ref), true)
			if out, _, err := retried(t, f.replay, f.input(), 1); err != nil || out.Objects[0].Rows != 5 {
				t.Errorf("%+v, %v", out, err)
			}
			f.has(t, lake.Key(f.ref), true)
			f.has(t, lake.QuarantineKey(f.ref), false)
		})
	}
}

func TestWhatCannotBeReplayedStaysInQuarantine(t *testing.T) {
	t.Run("undecodable", func(t *testing.T) {
		f := newFixture(t)
		f.source.changes[2].Raw = append([]byte("I\x00\xff"), rowData...)
		f.ref = refOf(f.source.changes)
		f.putAside(t)
		_, err := once(t, t.Context(), f.replay, f.input())
		wantError(t, err, activities.MalformedMessage, "stay in quarantine", "replay again")
		if strings.Contains(err.Error(), "send the update") {
			t.Errorf("the advice is one for a segment that waits: %v", err)
		}
		f.has(t, lake.QuarantineKey(f.ref), true)
		f.has(t, lake.Key(f.ref), false)
	})
	t.Run("other rows are in its place", func(t *testing.T) {
		f := newFixture(t)
		f.putAside(t)
		other := f.ref
		other.Digest++
		body, _, err := f.store.Get(t.Context(), lake.QuarantineKey(f.ref))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.store.Memory.Put(t.Context(), lake.Key(f.ref), []byte(strings.Replace(string(body), f.ref.Digest.String(), other.Digest.String(), 1)), lake.Condition{}); err != nil {
			t.Fatal(err)
		}
		_, err = once(t, t.Context(), f.replay, f.input())
		wantError(t, err, activities.LakeConflict)
		f.has(t, lake.QuarantineKey(f.ref), true)
	})
	t.Run("it is not there", func(t *testing.T) {
		f := newFixture(t)
		_, err := once(t, t.Context(), f.replay, f.input())
		wantError(t, err, activities.NotInQuarantine)
	})
	t.Run("it is of another digest than it says", func(t *testing.T) {
		f := newFixture(t)
		sound := f.ref
		f.source.changes[2].XID++
		f.ref = refOf(f.source.changes)
		f.putAside(t)
		body, _, err := f.store.Get(t.Context(), lake.QuarantineKey(f.ref))
		if err != nil {
			t.Fatal(err)
		}
		body = []byte(strings.Replace(string(body), f.ref.Digest.String(), sound.Digest.String(), 1))
		f.ref = sound
		if _, err := f.store.Memory.Put(t.Context(), lake.QuarantineKey(f.ref), body, lake.Condition{}); err != nil {
			t.Fatal(err)
		}
		_, err = once(t, t.Context(), f.replay, f.input())
		wantError(t, err, activities.QuarantineDamaged)
	})
}
