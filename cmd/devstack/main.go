package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
)

// command is one verb of devstack.
type command struct {
	name, about string
	run         func(ctx context.Context, args []string) error
}

func commands() []command {
	return []command{
		{"up", "start Temporal, the S3 gateway and Postgres, and keep them until Ctrl-C", up},
		{"demo", "run Tidemark on a fresh stack under a live write load, and compare", demo},
		{"bench", "measure Tidemark on a fresh stack against pg_recvlogical", runBench},
		{"chaos", "break everything that Tidemark depends on under load, and count", runChaos},
		{"temporal", "serve Temporal and its UI alone", serveTemporal},
		{"s3", "serve a folder as S3 alone", serveS3},
		{"postgres", "run a private Postgres cluster alone", servePostgres},
	}
}

func main() {
	stack.Main()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the program at once; the kernel then ends its children.
	context.AfterFunc(ctx, stop)

	if err := dispatch(ctx, os.Args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			os.Exit(2)
		}
		fmt.Fprintln(os.Stderr, "devstack:", err)
		os.Exit(1)
	}
}

func dispatch(ctx context.Context, args []string) error {
	if len(args) > 0 {
		for _, c := range commands() {
			if c.name == args[0] {
				return c.run(ctx, args[1:])
			}
		}
		if args[0] != "help" && args[0] != "-h" && args[0] != "--help" {
			fmt.Fprintf(os.Stderr, "devstack: there is no command %q\n\n", args[0])
		}
	}
	fmt.Fprintln(os.Stderr, "usage: devstack <command> [flags]; devstack <command> -h lists the flags")
	for _, c := range commands() {
		fmt.Fprintf(os.Stderr, "  %-10s %s\n", c.name, c.about)
	}
	return flag.ErrHelp
}

// parse reads args into the flags that define has declared.
func parse(name string, args []string, define func(*flag.FlagSet)) error {
	fs := flag.NewFlagSet("devstack "+name, flag.ContinueOnError)
	define(fs)
	if err := fs.Parse(args); err != nil {
		return flag.ErrHelp // the flag set has said what is wrong
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("%s takes no arguments, but got %q", name, fs.Args())
	}
	return nil
}
