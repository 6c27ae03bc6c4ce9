// Command check compares two reports of the bench, and says which figures have
// moved beyond the spread of both: make bench-check.
package main

import (
	"fmt"
	"os"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/bench/figures"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: check <before.json> <after.json>")
		os.Exit(2)
	}
	worse, err := check(os.Args[1], os.Args[2])
	if err == nil && worse > 0 {
		err = fmt.Errorf("%d figures are worse or missing", worse)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-check:", err)
		os.Exit(1)
	}
}

func check(before, after string) (worse int, err error) {
	was, err := figures.Read(before)
	if err != nil {
		return 0, err
	}
	is, err := figures.Read(after)
	if err != nil {
		return 0, err
	}
	return figures.PrintChanges(os.Stdout, figures.Compare(was, is))
}
