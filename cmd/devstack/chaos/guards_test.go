//go:build chaos_guards

package chaos_test

import (
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/chaos"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
)

var (
	guards = flag.String("chaos.guards", "", "build tags, each of which breaks a guard, with commas between (default: all)")
	most   = flag.Int("chaos.most", 100, "play at most this many random histories for each guard")
	from   = flag.Int("chaos.from", 1, "the first random history's number")
)

// Each guard is broken in a build of its own. The history that was made for it
// has to find it. Then those that the state machine test draws are played until
// one does, which is made shorter and printed. At the end there is a table.
func TestEachBrokenGuardIsFound(t *testing.T) {
	var table strings.Builder
	out := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "broken guard\tdirected\trandom")
	for _, d := range directed {
		if *guards != "" && !slices.Contains(strings.Split(*guards, ","), d.tag) {
			continue
		}
		t.Run(d.tag, func(t *testing.T) {
			*binary = filepath.Join(t.TempDir(), "tidemark")
			if err := pipeline.Build(t.Context(), *binary, d.tag); err != nil {
				t.Fatal(err)
			}
			w := world(t)
			row := []any{d.tag, "not found", fmt.Sprintf("not found by %d", *most)}
			defer func() { fmt.Fprintf(out, "%s\t%s\t%s\n", row...) }()
			begin := time.Now()
			found := wrong(t, w, d.History)
			took := time.Since(begin).Round(time.Second)
			if found == "" {
				t.Errorf("the history made for it does not find it:\n%s", d.History)
			} else {
				row[1] = fmt.Sprintf("found in %s", took)
				t.Logf("the history made for it finds it in %s:\n%s%s", took, d.History, found)
			}
			begin = time.Now()
			for n := *from; n < *from+*most; n++ {
				h := history().Example(n)
				found := wrong(t, w, h)
				if found == "" {
					continue
				}
				row[2] = fmt.Sprintf("found by the %d. in %s", n-*from+1, time.Since(begin).Round(time.Second))
				t.Logf("history %d, %s:\n%s%s", n, row[2], h, found)
				short, why := shorten(t, w, h, found)
				t.Logf("the shortest:\n%s%s", short, why)
				return
			}
			t.Logf("%d random histories in %s do not find it", *most, time.Since(begin).Round(time.Second))
		})
	}
	out.Flush()
	t.Logf("\n%s", &table)
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
