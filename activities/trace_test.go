package activities_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/tidemark-cdc/tidemark/activities"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// attempts is a Tracer that keeps what it is told, and of which runs.
type attempts struct {
	mu   sync.Mutex
	list []activities.TracedAttempt
	runs []string
}

func (a *attempts) Traced(ctx context.Context, t activities.TracedAttempt) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, t)
	a.runs = append(a.runs, activity.GetInfo(ctx).WorkflowExecution.RunID)
}

func TestTheTracerIsToldHowAttemptsWent(t *testing.T) {
	for name, tc := range map[string]struct {
		arrange    func(*fixture)
		quarantine bool
		want       string
	}{
		"stored": {want: `upload "" [fetch 5 encode 5 store 5] 1`},
		"the rows are not there yet": {
			arrange: func(f *fixture) { f.source.fetchErr = segment.ErrNotYet },
			want:    `upload "RowsNotYet" [fetch 0] 0`,
		},
		"the rows are gone, and the lake is looked at": {
			arrange: func(f *fixture) { f.source.fetchErr = segment.ErrGone },
			want:    `upload "RowsGone" [fetch 0 look 0] 0`,
		},
		"the store fails": {
			arrange: func(f *fixture) { f.store.putErr, f.store.always = storeFailure(lake.Throttled, 0), true },
			want:    `upload "StoreThrottled" [fetch 5 encode 5 store 5] 0`,
		},
		"put aside":      {quarantine: true, want: `quarantine "" [look 0 fetch 5 encode 5 store 5] 1`},
		"another's lake": {arrange: func(f *fixture) { f.ref.Lake = "s3://bucket/other" }, want: `upload "AnotherLake" [] 0`},
	} {
		t.Run(name, func(t *testing.T) {
			f, seen := newFixture(t), &attempts{}
			f.Tracer = seen
			if tc.arrange != nil {
				tc.arrange(f)
			}
			fn := activityFunc(f.Upload)
			if tc.quarantine {
				fn = f.Quarantine
			}
			begun := time.Now()
			_, _ = once(t, t.Context(), fn, f.input())
			if len(seen.list) != 1 {
				t.Fatalf("told of %d attempts", len(seen.list))
			}
			a := seen.list[0]
			steps, times := []string{}, []time.Time{begun, a.From}
			for _, s := range a.Steps {
				steps = append(steps, fmt.Sprint(s.Step.Word(), " ", s.Rows))
				times = append(times, s.From, s.To)
			}
			if got := fmt.Sprintf("%s %q %v %d", a.Action, a.Class, steps, len(a.Result.Objects)); got != tc.want {
				t.Errorf("told is %s, want %s", got, tc.want)
			}
			if times = append(times, a.To, time.Now()); !slices.IsSortedFunc(times, time.Time.Compare) {
				t.Errorf("it went at %v", times)
			}
			if a.Number != 1 || a.Ref.First != f.ref.First || seen.runs[0] == "" {
				t.Errorf("told is attempt %d of segment %s, run %q", a.Number, a.Ref.First, seen.runs[0])
			}
		})
	}
}
