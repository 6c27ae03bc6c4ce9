package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/bench"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/bench/figures"
)

// runBench measures, prints a table and writes the figures as JSON.
func runBench(ctx context.Context, args []string) error {
	cfg := bench.Config{Progress: progress}
	var only, out string
	err := parse("bench", args, func(fs *flag.FlagSet) {
		fs.BoolVar(&cfg.Quick, "quick", false, "the same figures from less work")
		fs.IntVar(&cfg.Runs, "runs", 0, "how often each figure is measured (default 5; 3 with -quick)")
		fs.IntVar(&cfg.Large, "large", 0, "rows of the transaction of which the memory is watched, some 220 bytes each (default 1000000)")
		fs.StringVar(&only, "only", "", "scenarios, with commas: "+strings.Join(bench.Scenarios(), ", ")+" (default: all)")
		fs.StringVar(&out, "out", "bench.json", "file for the figures")
		fs.StringVar(&cfg.Binary, "tidemark", "bin/tidemark", "the tidemark program")
	})
	if err != nil {
		return err
	}
	if only != "" {
		cfg.Only = strings.Split(only, ",")
	}
	if cfg.Binary, err = filepath.Abs(cfg.Binary); err != nil {
		return err
	}
	if _, err := os.Stat(cfg.Binary); err != nil {
		return fmt.Errorf("there is no tidemark program at %s: run make build, or say where it is with -tidemark", cfg.Binary)
	}
	list, err := bench.Run(ctx, cfg)
	if len(list) == 0 {
		return err
	}
	fmt.Println()
	if perr := figures.Print(os.Stdout, list); perr != nil {
		return errors.Join(err, perr)
	}
	return errors.Join(err, figures.Write(out, list))
}
