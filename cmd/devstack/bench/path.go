package bench

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
)

const (
	pathOwn    = "BenchmarkOrderedPath"
	pathByHand = "BenchmarkOrderedPathByHand"
	// pathRows is how many changes one operation of these benchmarks has.
	pathRows = 20_000
)

// benchLine is a line that go test prints for a benchmark: its name, the figure
// of ours and the allocations.
var benchLine = regexp.MustCompile(`(?m)^(Benchmark\w+)(?:-\d+)?\s.*?([\d.]+) cpu-ns/change.*?(\d+) allocs/op`)

// path measures the ordered path alone, from a message to a change in the ring,
// with the benchmarks of package streamer: they need what is not exported there.
func (b *bench) path(ctx context.Context) error {
	root, err := pipeline.Root()
	if err != nil {
		return err
	}
	for i := range b.size.runs {
		cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^"+pathOwn, "-benchtime", "1s", "./streamer")
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("run the benchmarks of package streamer: %w\n%s", err, out)
		}
		cpu, allocs := map[string]float64{}, map[string]float64{}
		for _, m := range benchLine.FindAllStringSubmatch(string(out), -1) {
			// The expression matches numbers only.
			cpu[m[1]], _ = strconv.ParseFloat(m[2], 64)
			allocs[m[1]], _ = strconv.ParseFloat(m[3], 64)
		}
		if cpu[pathOwn] == 0 || cpu[pathByHand] == 0 {
			return fmt.Errorf("the benchmarks of package streamer have not said what was expected:\n%s", out)
		}
		b.say("ordered path run %d: %.0f ns per change, by hand %.0f ns; load %s", i+1, cpu[pathOwn], cpu[pathByHand], loadAverage())
		b.report.Add("ordered_path.time_ratio", "ratio", "pglogrepl into maps", cpu[pathOwn]/cpu[pathByHand])
		b.report.Add("ordered_path.ns_per_change", "ns", "", cpu[pathOwn])
		b.report.Add("ordered_path.allocs_per_change", "allocations", "", allocs[pathOwn]/pathRows)
	}
	return nil
}
