package activities_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/activities"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// notes is an Observer that writes down what it is told, without the times.
type notes struct {
	mu   sync.Mutex
	list []string
}

func (n *notes) note(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, fmt.Sprintf(format, args...))
}

func (n *notes) Attempted(action, class string)          { n.note("attempted %s %q", action, class) }
func (n *notes) Stepped(step string, took time.Duration) { n.note("%s %t", step, took >= 0) }
func (n *notes) Decoded(operation string, count int64)   { n.note("decoded %d %s", count, operation) }
func (n *notes) Stored(rows, bytes int64, quarantined bool) {
	n.note("stored %d %t %t", rows, bytes > 0, quarantined)
}

func TestTheObserverIsToldWhatAttemptsDo(t *testing.T) {
	for name, tc := range map[string]struct {
		arrange    func(*fixture)
		quarantine bool
		want       []string
	}{
		"stored": {want: []string{"fetch true", "decoded 5 insert", "encode true", "stored 5 true false", `attempted upload ""`, "store true"}},
		"the rows are not there yet": {
			arrange: func(f *fixture) { f.source.fetchErr = segment.ErrNotYet },
			want:    []string{`attempted upload "RowsNotYet"`, "fetch true"},
		},
		"the store fails": {
			arrange: func(f *fixture) { f.store.putErr, f.store.always = storeFailure(lake.Throttled, 0), true },
			want:    []string{"fetch true", "decoded 5 insert", "encode true", `attempted upload "StoreThrottled"`, "store true"},
		},
		"put aside": {
			quarantine: true,
			want:       []string{"look true", "fetch true", "encode true", "stored 5 true true", `attempted quarantine ""`, "store true"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, seen := newFixture(t), &notes{}
			f.Observer = seen
			if tc.arrange != nil {
				tc.arrange(f)
			}
			fn := activityFunc(f.Upload)
			if tc.quarantine {
				fn = f.Quarantine
			}
			_, _ = once(t, t.Context(), fn, f.input())
			if !slices.Equal(seen.list, tc.want) {
				t.Errorf("got %q, want %q", seen.list, tc.want)
			}
		})
	}
}

func TestAnObjectThatWasThereBeforeIsNotCountedAgain(t *testing.T) {
	f, seen := newFixture(t), &notes{}
	f.Observer = seen
	for range 2 {
		if _, err := once(t, t.Context(), f.Upload, f.input()); err != nil {
			t.Fatal(err)
		}
	}
	stored := 0
	for _, n := range seen.list {
		if n == "stored 5 true false" {
			stored++
		}
	}
	if stored != 1 {
		t.Errorf("stored is told %d times: %q", stored, seen.list)
	}
}

func TestClassesListsEveryClassOfTheSource(t *testing.T) {
	source, err := os.ReadFile("errors.go")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^\t\w+ +Class = "(\w+)"$`).FindAllSubmatch(source, -1)
	if len(found) != len(activities.Classes()) {
		t.Errorf("%d classes are listed, %d are defined", len(activities.Classes()), len(found))
	}
	for _, m := range found {
		if !slices.Contains(activities.Classes(), activities.Class(m[1])) {
			t.Errorf("%s is not listed", m[1])
		}
	}
}
