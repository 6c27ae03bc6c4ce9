package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/chaos"
)

// runChaos breaks everything that Tidemark depends on while it carries a load,
// prints a report and writes it as JSON.
func runChaos(ctx context.Context, args []string) error {
	c := chaos.Campaign{Options: chaos.Options{Progress: progress}}
	var minutes float64
	var only, out string
	err := parse("chaos", args, func(fs *flag.FlagSet) {
		fs.Float64Var(&minutes, "minutes", 5, "how long to break things")
		fs.Uint64Var(&c.Seed, "seed", 0, "chooses the faults, their moments and the transactions (default: by the clock)")
		fs.IntVar(&c.Rate, "rate", 1000, "about how many row changes per second to write")
		fs.DurationVar(&c.TemporalAway, "temporal-away", 0, "stop Temporal once for so long, at first and on top of -minutes")
		fs.IntVar(&c.AfterKill, "after-kill", 5000, "kill everything once more at the end, under this many changes per second; 0 leaves it out")
		fs.IntVar(&c.Postgres, "pg", 0, "15 or 18 (default: 18 with an even seed, else 15)")
		fs.StringVar(&only, "only", "", "kinds of faults, with commas (default: all); -only list prints them")
		fs.StringVar(&out, "out", "chaos.json", "file for the figures")
		fs.StringVar(&c.Binary, "tidemark", "bin/tidemark", "the tidemark program")
		fs.StringVar(&c.Dir, "dir", "", "new folder for all data and logs, to be kept (default: a temporary one, kept if something is wrong)")
	})
	if err != nil {
		return err
	}
	if only == "list" {
		for _, f := range chaos.Faults() {
			fmt.Println(f.Kind)
		}
		return nil
	}
	for _, kind := range strings.FieldsFunc(only, func(r rune) bool { return r == ',' }) {
		f, ok := chaos.Kind(strings.TrimSpace(kind))
		if !ok {
			return fmt.Errorf("there is no fault %q: -only list prints them", kind)
		}
		c.Only = append(c.Only, f.Kind)
	}
	if c.Seed == 0 {
		c.Seed = uint64(time.Now().UnixMilli())
	}
	if c.Postgres == 0 {
		c.Postgres = 18 - 3*int(c.Seed%2)
	}
	c.Duration = time.Duration(minutes * float64(time.Minute))
	if c.Binary, err = filepath.Abs(c.Binary); err != nil {
		return err
	}
	if _, err := os.Stat(c.Binary); err != nil {
		return fmt.Errorf("there is no tidemark program at %s: run make build, or say where it is with -tidemark", c.Binary)
	}
	kept := c.Dir != ""
	if !kept {
		if c.Dir, err = os.MkdirTemp("", "tidemark-chaos-"); err != nil {
			return fmt.Errorf("make a folder for the data: %w", err)
		}
	}
	progress(fmt.Sprintf("seed %d, Postgres %d, %d changes per second, %s; everything is in %s", c.Seed, c.Postgres, c.Rate, c.Duration, c.Dir))
	report, err := c.Run(ctx)
	if report.Verdict != nil || len(report.Kinds) > 0 {
		err = errors.Join(err, report.Print(os.Stdout), report.Write(out))
	}
	if err == nil && !report.Good() {
		err = errors.New("the lake is not what was committed; see above")
	}
	if err != nil {
		return fmt.Errorf("%w\n(seed %d; data and logs are in %s)", err, c.Seed, c.Dir)
	}
	if !kept {
		return os.RemoveAll(c.Dir)
	}
	return nil
}
