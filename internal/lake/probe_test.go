package lake_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/lake"
)

// oddStore is a Memory that forgets conditions, or cannot remove.
type oddStore struct {
	*lake.Memory
	forgets  func(*lake.Condition)
	noRemove bool
}

func (o oddStore) Put(ctx context.Context, key string, body []byte, cond lake.Condition) (string, error) {
	if o.forgets != nil {
		o.forgets(&cond)
	}
	return o.Memory.Put(ctx, key, body, cond)
}

func (o oddStore) Remove(ctx context.Context, key string) error {
	if o.noRemove {
		return &lake.Error{Op: "remove", Object: key, Kind: lake.Denied, Err: errors.New("AccessDenied")}
	}
	return o.Memory.Remove(ctx, key)
}

func TestTheProbeFindsWhatAStoreDoesNotKeep(t *testing.T) {
	none := func(c *lake.Condition) { c.IfNoneMatch = false }
	match := func(c *lake.Condition) { c.IfMatch = "" }
	for name, tc := range map[string]struct {
		store lake.Store
		want  error
		text  string
		left  int
	}{
		"a good one":                         {store: lake.NewMemory()},
		"no If-None-Match":                   {oddStore{Memory: lake.NewMemory(), forgets: none}, lake.ErrIgnoresConditions, "If-None-Match", 0},
		"no If-Match":                        {oddStore{Memory: lake.NewMemory(), forgets: match}, lake.ErrIgnoresConditions, "If-Match", 0},
		"neither, and conditions are off":    {store: lake.Unconditional(oddStore{Memory: lake.NewMemory(), forgets: func(c *lake.Condition) { *c = lake.Condition{} }})},
		"objects that may not be removed":    {oddStore{Memory: lake.NewMemory(), noRemove: true}, lake.ErrProbeLeft, "AccessDenied", 3},
		"a bad one whose object is left too": {oddStore{Memory: lake.NewMemory(), forgets: none, noRemove: true}, lake.ErrIgnoresConditions, "If-None-Match", 3},
	} {
		t.Run(name, func(t *testing.T) {
			l := lake.New("s3://bucket/p", tc.store)
			err := l.Probe(t.Context())
			if !errors.Is(err, tc.want) || tc.want == nil && err != nil || err != nil && !strings.Contains(err.Error(), tc.text) {
				t.Errorf("got %v, want %v with %q", err, tc.want, tc.text)
			}
			left := 0
			for info, err := range tc.store.List(t.Context(), "", "") {
				if err != nil || !strings.HasPrefix(info.Key, "_tidemark/probe-") {
					t.Errorf("there is %q (%v)", info.Key, err)
				}
				left++
			}
			if left != tc.left {
				t.Errorf("%d objects are left, want %d", left, tc.left)
			}
			report, err := lake.Verify(t.Context(), l, lake.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range report.Findings {
				if f.Kind == lake.KindForeign {
					t.Errorf("verify finds %+v", f)
				}
			}
		})
	}
}

func TestTheProbeOfS3SaysWhatIsDenied(t *testing.T) {
	f := startS3(t)
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			s3Error(w, 403, "AccessDenied")
			return true
		}
		return false
	}
	err := f.open(t, "p", nil).Probe(t.Context())
	if err == nil || lake.Class(err).Kind != lake.Denied || !strings.Contains(err.Error(), "s3:PutObject") {
		t.Errorf("got %v", err)
	}
}
