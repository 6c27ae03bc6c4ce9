package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
)

// stackFlags declares the flags that say which stack to start.
func stackFlags(fs *flag.FlagSet, opt *stack.Options) {
	fs.StringVar(&opt.Dir, "dir", "", "keep everything in this folder (default: a temporary one, removed at the end)")
	fs.IntVar(&opt.Postgres.Version, "postgres", 0, "15 or 18 (default: 18 where it is installed, else 15)")
	fs.IntVar(&opt.Postgres.Port, "postgres-port", 0, "port on 127.0.0.1 (default: a free one)")
	fs.IntVar(&opt.Temporal.Port, "temporal-port", 0, "port on 127.0.0.1 (default: a free one)")
	fs.IntVar(&opt.Temporal.UIPort, "ui-port", 0, "port of the Temporal UI on 127.0.0.1 (default: a free one)")
	fs.BoolVar(&opt.Temporal.Memory, "temporal-memory", false, "keep Temporal's state in memory")
	fs.IntVar(&opt.S3.Port, "s3-port", 0, "port on 127.0.0.1 (default: a free one)")
	fs.StringVar(&opt.S3.Bucket, "bucket", "lake", "bucket to make")
	fs.StringVar(&opt.S3.Folder, "s3-folder", "", "folder to serve as S3 (default: in the stack's folder)")
}

func up(ctx context.Context, args []string) (err error) {
	opt := stack.Options{Progress: progress}
	if err := parse("up", args, func(fs *flag.FlagSet) { stackFlags(fs, &opt) }); err != nil {
		return err
	}
	s, err := stack.Start(ctx, opt)
	if err != nil {
		return err
	}
	printAddresses(s)
	fmt.Println("\nReady. Ctrl-C stops everything.")
	if err := s.Watch(ctx); err != nil {
		return closing(s, err)
	}
	progress("stopping")
	return closing(s, nil)
}

func closing(s *stack.Stack, err error) error {
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	return err
}

func printAddresses(s *stack.Stack) {
	fmt.Printf(`
Postgres %d   %s
Temporal      %s, namespace %s
Temporal UI   %s
S3            %s, bucket %s
lake folder   %s
logs          %s

For a shell:
`, s.Postgres.Version(), s.Postgres.URL(), s.Temporal.Address(), s.Temporal.Namespace(), s.Temporal.UI(),
		s.S3.Endpoint(), s.S3.Bucket(), s.S3.Folder(), s.Dir())
	for _, line := range s.Env() {
		fmt.Println("export " + line)
	}
}

// progress prints one line of what is going on.
func progress(text string) {
	fmt.Printf("%s  %s\n", time.Now().Format(time.TimeOnly), text)
}
