// Command tidemark copies committed row changes from Postgres to Parquet files
// in S3. Run tidemark --help.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		first := <-signals
		cancel(fmt.Errorf("received %s", first))
		second := <-signals
		fmt.Fprintf(os.Stderr, "tidemark: received a second signal (%s), stopping at once; what is not in the lake yet is read again at the next start\n", second)
		os.Exit(statusFailed)
	}()
	var screen func() (func() (int, int), func(), error)
	if term.IsTerminal(int(os.Stdout.Fd())) {
		screen = rawScreen
	}
	os.Exit(execute(ctx, os.Args[1:], system{
		environ:  os.Environ(),
		stdin:    os.Stdin,
		stdout:   os.Stdout,
		stderr:   os.Stderr,
		terminal: func() bool { return term.IsTerminal(int(os.Stdin.Fd())) },
		colored:  term.IsTerminal(int(os.Stderr.Fd())),
		columns:  stderrColumns,
		screen:   screen,
	}))
}

// stderrColumns is system's columns on a real terminal.
func stderrColumns() int {
	columns, _, err := term.GetSize(int(os.Stderr.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// rawScreen is system's screen on a real terminal.
func rawScreen() (size func() (columns, lines int), restore func(), err error) {
	stdin := int(os.Stdin.Fd())
	before, err := term.MakeRaw(stdin)
	if err != nil {
		return nil, nil, err
	}
	size = func() (columns, lines int) {
		columns, lines, err := term.GetSize(int(os.Stdout.Fd()))
		if err != nil {
			return 0, 0 // nothing is cut then
		}
		return columns, lines
	}
	return size, func() { _ = term.Restore(stdin, before) }, nil
}
