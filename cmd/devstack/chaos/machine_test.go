package chaos_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/chaos"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
)

var (
	histories = flag.Int("chaos.histories", 0, "play this many histories instead of as many as fit into -chaos.time")
	budget    = flag.Duration("chaos.time", 60*time.Second, "begin no random history after this time")
	version   = flag.Int("chaos.pg", 0, "15 or 18 (default: either, by chance)")
	binary    = flag.String("chaos.tidemark", "", "the tidemark program (default: built from here)")
)

func TestMain(m *testing.M) { harness.Main(m) }

// One world serves all histories, each on a pipeline of its own, so that a
// failing one is made shorter in reasonable time. The shortest is kept in
// testdata/rapid and played first the next time. The directed ones come before
// those that are drawn.
func TestEveryHistoryEndsWithEveryChangeInTheLakeOnce(t *testing.T) {
	w := world(t)
	begin, played, failed := time.Now(), 0, false
	for _, d := range directed {
		if found := wrong(t, w, d.History); found != "" {
			t.Errorf("the history that needs the guard of %s:\n%s%s", d.tag, d.History, found)
		}
	}
	t.Logf("%d directed histories in %s", len(directed), time.Since(begin).Round(time.Second))
	if t.Failed() {
		return // rapid does not begin with a test that has failed
	}
	begin = time.Now()
	most := *histories
	if most == 0 {
		most = 1000
	}
	setFlag(t, "rapid.checks", fmt.Sprint(most))
	setFlag(t, "rapid.shrinktime", "4m")
	rapid.Check(t, func(rt *rapid.T) {
		// A history that fails is played again, however late it is.
		if *histories == 0 && !failed && time.Since(begin) > *budget {
			return
		}
		h := history().Draw(rt, "history")
		played++
		v, err := w.Play(t.Context(), h)
		if err == nil && v.Good() {
			return
		}
		failed = true
		if err != nil {
			rt.Fatalf("%s%v", h, err)
		}
		rt.Fatalf("%s%s", h, v)
	})
	t.Logf("%d histories in %s", played, time.Since(begin).Round(time.Second))
	if played == 0 {
		t.Error("no history was played")
	}
}

func world(t *testing.T) *chaos.World {
	t.Helper()
	opt := chaos.Options{Postgres: *version, Binary: *binary, Progress: func(s string) { t.Log(s) }}
	if opt.Postgres == 0 {
		opt.Postgres = []int{15, 18}[rand.IntN(2)]
	}
	if opt.Binary == "" {
		opt.Binary = os.Getenv("DEVSTACK_TIDEMARK")
	}
	t.Logf("Postgres %d", opt.Postgres)
	w, err := chaos.NewWorld(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func setFlag(t *testing.T, name, value string) {
	t.Helper()
	if err := flag.Set(name, value); err != nil {
		t.Fatal(err)
	}
}

// history draws one. Segments and ring are so small that a few rows make many
// of the ones and fill the other.
func history() *rapid.Generator[chaos.History] {
	return rapid.Custom(func(t *rapid.T) chaos.History {
		rows := rapid.SampledFrom([]int{20, 3, 100, 1000}).Draw(t, "rows")
		h := chaos.History{
			Workers: rapid.IntRange(0, 2).Draw(t, "workers"),
			Settings: pipeline.Settings{
				"segment.max_rows":       rows,
				"segment.max_bytes":      "16KiB",
				"segment.max_age":        rapid.SampledFrom([]string{"200ms", "50ms", "1s"}).Draw(t, "age"),
				"ring.max_bytes":         rapid.SampledFrom([]string{"64KiB", "1MiB"}).Draw(t, "ring"),
				"streamer.max_in_flight": rapid.SampledFrom([]int{8, 1, 64}).Draw(t, "in flight"),
			},
			Seed: rapid.Uint64().Draw(t, "seed"),
		}
		for _, scene := range rapid.SliceOfN(rapid.OneOf(loose(rows), succession(rows)), 1, 3).Draw(t, "scenes") {
			h.Steps = append(h.Steps, scene...)
		}
		for i := range h.Steps {
			// A segment is a workflow, and Temporal bears some dozens in a second.
			h.Steps[i].N = min(h.Steps[i].N, 20*rows)
		}
		return h
	})
}

// loose draws steps that have nothing to do with each other: as many commits as
// faults.
func loose(rows int) *rapid.Generator[[]chaos.Step] {
	kinds := []string{}
	for _, f := range chaos.Faults() {
		kinds = append(kinds, f.Kind)
	}
	step := rapid.Custom(func(t *rapid.T) chaos.Step {
		switch rapid.IntRange(0, 9).Draw(t, "what") {
		case 0, 1, 2, 3:
			return commit(rows).Draw(t, "commit")
		case 4, 5, 6, 7:
			return chaos.Step{Break: rapid.SampledFrom(kinds).Draw(t, "fault")}
		case 8:
			return chaos.Step{Mend: "all"}
		default:
			return pause().Draw(t, "pause")
		}
	})
	return rapid.SliceOfN(step, 1, 6)
}

// succession draws what guards are for: something is not finished, or other
// things are finished before it, when its streamer goes; another one, of other
// settings maybe, comes, and only then what was not finished may be.
func succession(rows int) *rapid.Generator[[]chaos.Step] {
	return rapid.Custom(func(t *rapid.T) []chaos.Step {
		keeps := rapid.SampledFrom([]string{
			"S3 refuses all but the next segment", "S3 holds the next segment", "S3 refuses the next segment", "S3 uploads are held", "worker stopped",
		}).Draw(t, "keeps")
		ends := rapid.SampledFrom([]string{
			"settings changed", "streamer killed", "streamer stopped", "two streamers, then one",
		}).Draw(t, "ends")
		steps := []chaos.Step{{Break: keeps}}
		more := func() {
			steps = append(steps, rapid.SliceOfN(commit(rows), 0, 2).Draw(t, "commits")...)
		}
		steps = append(steps, commit(rows).Draw(t, "commit"))
		more()
		steps = append(steps, pause().Draw(t, "before"), chaos.Step{Break: ends})
		more()
		steps = append(steps, chaos.Step{Mend: ends}, pause().Draw(t, "after"))
		if rapid.Bool().Draw(t, "mended") {
			steps = append(steps, chaos.Step{Mend: "all"})
		}
		return steps
	})
}

// commit draws a transaction. Every other one is of the shapes whose commits lie
// close to each other, and every other one about as large as a segment.
func commit(rows int) *rapid.Generator[chaos.Step] {
	shapes := rapid.OneOf(rapid.SampledFrom([]string{"interleaved", "single rows"}), rapid.SampledFrom(chaos.Shapes()))
	// Each of three interleaved ones has a third of this, rounded up.
	sizes := rapid.OneOf(rapid.Just(max(3*rows-9, 1)), rapid.SampledFrom([]int{5, 1, 30, 300, 3000}))
	return rapid.Custom(func(t *rapid.T) chaos.Step {
		return chaos.Step{Commit: shapes.Draw(t, "shape"), N: sizes.Draw(t, "changes")}
	})
}

// pause draws a while, or what is waited for.
func pause() *rapid.Generator[chaos.Step] {
	return rapid.Custom(func(t *rapid.T) chaos.Step {
		until := rapid.SampledFrom([]string{chaos.UntilAck, chaos.UntilUpload, ""}).Draw(t, "until")
		if until != "" {
			return chaos.Step{Until: until, Pause: 2 * time.Second}
		}
		return chaos.Step{Pause: time.Duration(rapid.IntRange(50, 1500).Draw(t, "ms")) * time.Millisecond}
	})
}
