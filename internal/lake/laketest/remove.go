package laketest

import (
	"errors"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/lake"
)

func remove(t *testing.T, s lake.Store) {
	put(t, s, "_tidemark/one", "1", lake.Condition{})
	put(t, s, "_tidemark/two", "2", lake.Condition{})
	for range 2 {
		if err := s.Remove(t.Context(), "_tidemark/one"); err != nil {
			t.Fatalf("Remove: %v", err)
		}
		if _, _, err := s.Get(t.Context(), "_tidemark/one"); !errors.Is(err, lake.ErrNotFound) {
			t.Errorf("a removed object: got %v, want ErrNotFound", err)
		}
	}
	if got, _ := get(t, s, "_tidemark/two"); got != "2" {
		t.Errorf("the other object holds %q", got)
	}
}

func probe(t *testing.T, s lake.Store) {
	if err := lake.New("s3://bucket/p", s).Probe(t.Context()); err != nil {
		t.Errorf("Probe: %v", err)
	}
	for info, err := range s.List(t.Context(), "", "") {
		t.Errorf("the probe has left %q (%v)", info.Key, err)
	}
}
