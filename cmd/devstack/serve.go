package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/s3gateway"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/temporalserver"
)

func serveTemporal(ctx context.Context, args []string) error {
	cfg := temporalserver.Config{Retention: stack.Retention}
	err := parse("temporal", args, func(fs *flag.FlagSet) {
		fs.StringVar(&cfg.Database, "db", "", "SQLite file (default: in memory)")
		fs.StringVar(&cfg.Namespace, "namespace", "default", "namespace to register")
		fs.DurationVar(&cfg.Retention, "retention", cfg.Retention, "how long a closed workflow is remembered")
		fs.IntVar(&cfg.Port, "port", 7233, "gRPC port on 127.0.0.1")
		fs.IntVar(&cfg.UIPort, "ui-port", 8233, "port of the UI on 127.0.0.1; 0 for none")
		fs.StringVar(&cfg.LogLevel, "log-level", "warn", "debug, info, warn or error")
	})
	if err != nil {
		return err
	}
	inner, err := stack.FreePorts(len(cfg.Inner))
	if err != nil {
		return err
	}
	copy(cfg.Inner[:], inner)
	fmt.Printf("Temporal      127.0.0.1:%d, namespace %s\n", cfg.Port, cfg.Namespace)
	if cfg.UIPort != 0 {
		fmt.Printf("Temporal UI   http://127.0.0.1:%d\n", cfg.UIPort)
	}
	return temporalserver.Run(ctx, cfg)
}

func serveS3(ctx context.Context, args []string) error {
	var port int
	cfg := s3gateway.Config{
		Region:    "us-east-1",
		AccessKey: os.Getenv("AWS_ACCESS_KEY_ID"), SecretKey: os.Getenv("AWS_SECRET_ACCESS_KEY"),
	}
	err := parse("s3", args, func(fs *flag.FlagSet) {
		fs.StringVar(&cfg.Root, "folder", "", "folder to serve; its subfolders are the buckets")
		fs.IntVar(&port, "port", 9000, "port on 127.0.0.1")
		fs.StringVar(&cfg.Region, "region", cfg.Region, "region that clients sign for")
	})
	if err != nil {
		return err
	}
	if cfg.Root == "" {
		return errors.New("s3: say which folder to serve with -folder")
	}
	if cfg.AccessKey == "" || cfg.SecretKey == "" {
		return errors.New("s3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to the keys that clients shall use")
	}
	if err := os.MkdirAll(cfg.Root, 0o755); err != nil {
		return err
	}
	cfg.Address = fmt.Sprintf("127.0.0.1:%d", port)
	fmt.Printf("S3            http://%s\n", cfg.Address)
	return s3gateway.Run(ctx, cfg)
}

func servePostgres(ctx context.Context, args []string) error {
	var opt stack.PostgresOptions
	err := parse("postgres", args, func(fs *flag.FlagSet) {
		fs.IntVar(&opt.Version, "version", 0, "15 or 18 (default: 18 where it is installed, else 15)")
		fs.IntVar(&opt.Port, "port", 0, "port on 127.0.0.1 (default: a free one)")
		fs.StringVar(&opt.Dir, "dir", "", "the cluster's folder (default: a temporary one, removed at the end)")
	})
	if err != nil {
		return err
	}
	p, err := stack.NewPostgres(opt)
	if err != nil {
		return err
	}
	startCtx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := p.Start(startCtx); err != nil {
		return errors.Join(err, p.Close())
	}
	fmt.Printf("Postgres %d   %s\n", p.Version(), p.URL())
	<-ctx.Done()
	return p.Close()
}
