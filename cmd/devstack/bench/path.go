package bench

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/proc"
)

// pathRows is how many changes one operation of the benchmarks of the ordered
// path has.
const pathRows = 20_000

// path measures the ordered path alone, from a message to a change in the ring,
// with the benchmarks of package streamer: they need what is not exported there.
func (b *bench) path(ctx context.Context) error {
	for i := range b.size.runs {
		own, peak, err := b.goBenchmark(ctx, "streamer", "BenchmarkOrderedPath", "cpu-ns/change", "allocs/op", "B/op")
		if err != nil {
			return err
		}
		byHand, _, err := b.goBenchmark(ctx, "streamer", "BenchmarkOrderedPathByHand", "cpu-ns/change")
		if err != nil {
			return err
		}
		b.say("ordered path run %d: %.0f ns per change, by hand %.0f ns; load %s", i+1, own["cpu-ns/change"], byHand["cpu-ns/change"], loadAverage())
		b.report.Add("ordered_path.time_ratio", "ratio", "pglogrepl into maps", own["cpu-ns/change"]/byHand["cpu-ns/change"])
		b.report.Add("ordered_path.ns_per_change", "ns", "", own["cpu-ns/change"])
		b.report.Add("ordered_path.allocs_per_change", "allocations", "", own["allocs/op"]/pathRows)
		b.report.Add("ordered_path.bytes_per_change", "bytes", "", own["B/op"]/pathRows)
		b.addMemory("ordered_path.", peak)
	}
	return nil
}

// encode measures what a worker does with a segment between its raw messages and
// a Parquet file, with the benchmarks of package rowfile.
func (b *bench) encode(ctx context.Context) error {
	for i := range b.size.runs {
		for _, segment := range []struct {
			prefix string
			rows   int
		}{{"encode_1000.", 1000}, {"encode.", 10_000}} {
			own, peak, err := b.goBenchmark(ctx, "internal/rowfile", fmt.Sprintf("BenchmarkEncode/%d", segment.rows), "ns/row", "allocs/op", "B/op", "file-bytes")
			if err != nil {
				return err
			}
			byHand, _, err := b.goBenchmark(ctx, "internal/rowfile", fmt.Sprintf("BenchmarkEncodeByHand/%d", segment.rows), "ns/row", "file-bytes")
			if err != nil {
				return err
			}
			prefix, rows := segment.prefix, float64(segment.rows)
			b.say("%srun %d: %.0f ns per row, by hand %.0f ns; load %s", prefix, i+1, own["ns/row"], byHand["ns/row"], loadAverage())
			b.report.Add(prefix+"time_ratio", "ratio", "arrow-go over maps, encoding/json", own["ns/row"]/byHand["ns/row"])
			b.report.Add(prefix+"ns_per_row", "ns", "", own["ns/row"])
			b.report.Add(prefix+"allocs_per_row", "allocations", "", own["allocs/op"]/rows)
			b.report.Add(prefix+"bytes_per_row", "bytes", "", own["B/op"]/rows)
			b.report.Add(prefix+"size_ratio", "ratio", "arrow-go over maps, encoding/json", own["file-bytes"]/byHand["file-bytes"])
			b.addMemory(prefix, peak)
		}
	}
	return nil
}

// goBenchmark runs one Go benchmark of a package for a second, in a process of
// its own, and gives those of its figures that have one of units, and the peak of
// the process' memory.
func (b *bench) goBenchmark(ctx context.Context, pkg, name string, units ...string) (map[string]float64, proc.Memory, error) {
	root, err := pipeline.Root()
	if err != nil {
		return nil, proc.Memory{}, err
	}
	program := filepath.Join(b.stack.Dir(), filepath.Base(pkg)+".test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", program, "./"+pkg)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return nil, proc.Memory{}, fmt.Errorf("build the benchmarks of package %s: %w\n%s", pkg, err, out)
	}
	child, err := proc.Start(proc.Config{
		Name: name, Path: program, Dir: filepath.Join(root, pkg), Log: program + ".log",
		Args: []string{"-test.run", "^$", "-test.bench", "^" + strings.ReplaceAll(name, "/", "$/^") + "$", "-test.benchmem", "-test.benchtime", "1s"},
	})
	if err != nil {
		return nil, proc.Memory{}, err
	}
	w := proc.Watch(ctx, child.PID())
	if err := child.Wait(ctx); err != nil {
		return nil, proc.Memory{}, errors.Join(err, child.Kill9())
	}
	peak, err := w.End()
	if err != nil {
		return nil, proc.Memory{}, err
	}
	figures, err := benchFigures(child.Output(), units)
	if err != nil {
		return nil, proc.Memory{}, fmt.Errorf("run %s of package %s: %w", name, pkg, err)
	}
	return figures, peak, nil
}

// benchLine is a line that a Go benchmark prints: its name, how often it ran, and
// its figures.
var benchLine = regexp.MustCompile(`(?m)^Benchmark\S+\s+\d+\s+(.*)$`)

// benchFigures reads those of a benchmark's figures that have one of units.
func benchFigures(output string, units []string) (map[string]float64, error) {
	figures := map[string]float64{}
	if line := benchLine.FindStringSubmatch(output); line != nil {
		words := strings.Fields(line[1])
		for i := 1; i < len(words); i += 2 {
			if !slices.Contains(units, words[i]) {
				continue
			}
			value, err := strconv.ParseFloat(words[i-1], 64)
			if err != nil {
				return nil, fmt.Errorf("read its figures: %w", err)
			}
			figures[words[i]] = value
		}
	}
	if len(figures) != len(units) {
		return nil, fmt.Errorf("it says %q, and %v were expected", output, units)
	}
	return figures, nil
}
