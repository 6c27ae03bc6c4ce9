package bench

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
)

// pathRows is how many changes one operation of the benchmarks of the ordered
// path has.
const pathRows = 20_000

// path measures the ordered path alone, from a message to a change in the ring,
// with the benchmarks of package streamer: they need what is not exported there.
func (b *bench) path(ctx context.Context) error {
	for i := range b.size.runs {
		got, err := goBenchmarks(ctx, "./streamer", "^BenchmarkOrderedPath", "cpu-ns/change", "allocs/op")
		if err != nil {
			return err
		}
		own, byHand := got["BenchmarkOrderedPath"], got["BenchmarkOrderedPathByHand"]
		if own == nil || byHand == nil {
			return fmt.Errorf("the benchmarks of package streamer have not said what was expected: %v", got)
		}
		b.say("ordered path run %d: %.0f ns per change, by hand %.0f ns; load %s", i+1, own["cpu-ns/change"], byHand["cpu-ns/change"], loadAverage())
		b.report.Add("ordered_path.time_ratio", "ratio", "pglogrepl into maps", own["cpu-ns/change"]/byHand["cpu-ns/change"])
		b.report.Add("ordered_path.ns_per_change", "ns", "", own["cpu-ns/change"])
		b.report.Add("ordered_path.allocs_per_change", "allocations", "", own["allocs/op"]/pathRows)
	}
	return nil
}

// encode measures what a worker does with a segment between its raw messages and
// a Parquet file, with the benchmarks of package rowfile.
func (b *bench) encode(ctx context.Context) error {
	const rows = "10000"
	for i := range b.size.runs {
		got, err := goBenchmarks(ctx, "./internal/rowfile", "^BenchmarkEncode", "ns/row", "allocs/op", "file-bytes")
		if err != nil {
			return err
		}
		for _, size := range []string{"1000", rows} {
			own, byHand := got["BenchmarkEncode/"+size], got["BenchmarkEncodeByHand/"+size]
			if own == nil || byHand == nil {
				return fmt.Errorf("the benchmarks of package rowfile have not said what was expected: %v", got)
			}
			prefix := "encode."
			if size != rows {
				prefix = "encode_" + size + "."
			}
			count, _ := strconv.ParseFloat(size, 64) // it is one of the above
			b.say("%srun %d: %.0f ns per row, by hand %.0f ns; load %s", prefix, i+1, own["ns/row"], byHand["ns/row"], loadAverage())
			b.report.Add(prefix+"time_ratio", "ratio", "arrow-go over maps, encoding/json", own["ns/row"]/byHand["ns/row"])
			b.report.Add(prefix+"ns_per_row", "ns", "", own["ns/row"])
			b.report.Add(prefix+"allocs_per_row", "allocations", "", own["allocs/op"]/count)
			b.report.Add(prefix+"size_ratio", "ratio", "arrow-go over maps, encoding/json", own["file-bytes"]/byHand["file-bytes"])
		}
	}
	return nil
}

// benchLine is a line that go test prints for a benchmark: its name, without the
// number of processors, and its figures.
var benchLine = regexp.MustCompile(`(?m)^(Benchmark\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)

// goBenchmarks runs the Go benchmarks of a package that match pattern for a
// second each, and gives those of their figures that have one of units.
func goBenchmarks(ctx context.Context, pkg, pattern string, units ...string) (map[string]map[string]float64, error) {
	root, err := pipeline.Root()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", pattern, "-benchmem", "-benchtime", "1s", pkg)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("run the benchmarks of package %s: %w\n%s", pkg, err, out)
	}
	got := map[string]map[string]float64{}
	for _, line := range benchLine.FindAllStringSubmatch(string(out), -1) {
		figures := map[string]float64{}
		words := strings.Fields(line[2])
		for i := 1; i < len(words); i += 2 {
			for _, unit := range units {
				if words[i] == unit {
					figures[unit], err = strconv.ParseFloat(words[i-1], 64)
				}
			}
		}
		if err != nil || len(figures) != len(units) {
			return nil, fmt.Errorf("the benchmarks of package %s say %q, and %v were expected", pkg, line[0], units)
		}
		got[line[1]] = figures
	}
	return got, nil
}
