//go:build chaos_guards

package chaos_test

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/chaos"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
)

var (
	guards = flag.String("chaos.guards", "tidemark_naive_ack,tidemark_naive_end,tidemark_naive_id,tidemark_naive_adopt,tidemark_naive_slab",
		"build tags, each of which breaks a guard")
	most = flag.Int("chaos.most", 300, "play at most this many histories for each guard")
	from = flag.Int("chaos.from", 1, "the first history's number")
)

// Each guard is broken in a build of its own, and the histories that the state
// machine test draws have to find it. The one that does is made shorter and
// printed.
func TestEachBrokenGuardIsFound(t *testing.T) {
	for _, tag := range strings.Split(*guards, ",") {
		t.Run(tag, func(t *testing.T) {
			*binary = filepath.Join(t.TempDir(), "tidemark")
			if err := pipeline.Build(t.Context(), *binary, tag); err != nil {
				t.Fatal(err)
			}
			w := world(t)
			begin := time.Now()
			for n := *from; n < *from+*most; n++ {
				h := history().Example(n)
				found := wrong(t, w, h)
				if found == "" {
					continue
				}
				t.Logf("found by history %d, the %d. that was played, after %s:\n%s\n%s",
					n, n-*from+1, time.Since(begin).Round(time.Second), h, found)
				short, why := shorten(t, w, h, found)
				t.Logf("the shortest:\n%s\n%s", short, why)
				return
			}
			t.Errorf("%d histories in %s do not find it", *most, time.Since(begin).Round(time.Second))
		})
	}
}

// wrong plays a history and says what is wrong; nothing if all is well.
func wrong(t *testing.T, w *chaos.World, h chaos.History) string {
	v, err := w.Play(t.Context(), h)
	switch {
	case err != nil:
		return err.Error()
	case !v.Good():
		return v.String()
	}
	return ""
}

// shorten leaves out one step after the other, for as long as what is left is
// still wrong.
func shorten(t *testing.T, w *chaos.World, h chaos.History, why string) (chaos.History, string) {
	for i := len(h.Steps) - 1; i >= 0; i-- {
		short := h
		short.Steps = append(append([]chaos.Step(nil), h.Steps[:i]...), h.Steps[i+1:]...)
		if found := wrong(t, w, short); found != "" {
			h, why = short, found
		}
	}
	return h, why
}
