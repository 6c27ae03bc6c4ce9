package main

import (
	"github.com/spf13/cobra"

	"github.com/tidemark-cdc/tidemark/internal/config"
)

func newRun(sys system) *cobra.Command {
	cmd := verb("run", "Run streamer and worker in one process",
		`Run a pipeline's streamer and a worker in one process; the worker reads the ring
directly. Other workers may join on this and, with data.listen set, on other
machines. Run tidemark setup once before.

SIGTERM or Ctrl-C stops gracefully: nothing more is read, what was read is
uploaded (for at most streamer.shutdown_timeout) and acknowledged. A second one
stops at once. Either way nothing is lost or doubled.`,
		func(cmd *cobra.Command) error {
			c, err := loadSettings(cmd, sys, config.NeedPipeline|config.NeedPostgres|config.NeedLake|config.NeedData|config.NeedPage)
			if err != nil {
				return err
			}
			return runProcess(cmd.Context(), c, sys, roles{streamer: true, worker: true})
		})
	return withSettings(cmd, "pipeline", "postgres-url", "lake-url", "lake-endpoint", "temporal-address", "segment", "ring", "worker", "ops", "tracing", "log")
}

func newStreamer(sys system) *cobra.Command {
	cmd := verb("streamer", "Run a pipeline's streamer",
		`Run a pipeline's streamer, which reads the slot and serves rows to workers. A
second streamer of the same pipeline stands by until the slot is free. Run
tidemark setup once before, and tidemark worker on as many machines as you like,
with data.listen and data.advertise set to what they can reach.

SIGTERM or Ctrl-C stops gracefully: nothing more is read, what was read is
uploaded by the workers (for at most streamer.shutdown_timeout) and
acknowledged. A second one stops at once. Either way nothing is lost or doubled.`,
		func(cmd *cobra.Command) error {
			c, err := loadSettings(cmd, sys, config.NeedPipeline|config.NeedPostgres|config.NeedLake|config.NeedData|config.NeedPage)
			if err != nil {
				return err
			}
			return runProcess(cmd.Context(), c, sys, roles{streamer: true})
		})
	return withSettings(cmd, "pipeline", "postgres-url", "lake-url", "lake-endpoint", "temporal-address", "segment", "ring", "streamer", "data", "ops", "tracing", "log")
}

func newWorker(sys system) *cobra.Command {
	cmd := verb("worker", "Run a worker",
		`Run a worker, which fetches segments from the pipeline's streamer, encodes and
uploads them. It keeps nothing; run as many as you like. It needs no database.

SIGTERM or Ctrl-C stops gracefully: running uploads finish (for at most
worker.drain_timeout). A second one stops at once; other workers then take over.`,
		func(cmd *cobra.Command) error {
			c, err := loadSettings(cmd, sys, config.NeedPipeline|config.NeedLake|config.NeedPage)
			if err != nil {
				return err
			}
			return runProcess(cmd.Context(), c, sys, roles{worker: true})
		})
	return withSettings(cmd, "pipeline", "lake-url", "lake-endpoint", "temporal-address", "worker", "data-t", "data-insecure", "ops", "tracing", "log")
}
