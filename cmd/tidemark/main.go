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
	os.Exit(execute(ctx, os.Args[1:], system{
		environ:  os.Environ(),
		stdin:    os.Stdin,
		stdout:   os.Stdout,
		stderr:   os.Stderr,
		terminal: func() bool { return term.IsTerminal(int(os.Stdin.Fd())) },
		colored:  term.IsTerminal(int(os.Stderr.Fd())),
	}))
}
