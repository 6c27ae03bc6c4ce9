package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"

	"github.com/tidemark-cdc/tidemark/activities"
	"github.com/tidemark-cdc/tidemark/internal/config"
	"github.com/tidemark-cdc/tidemark/internal/flight"
	"github.com/tidemark-cdc/tidemark/internal/operator"
	"github.com/tidemark-cdc/tidemark/internal/ops"
	"github.com/tidemark-cdc/tidemark/internal/readback"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/internal/tracker"
	"github.com/tidemark-cdc/tidemark/streamer"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
	"github.com/tidemark-cdc/tidemark/streamer/ring"
	"github.com/tidemark-cdc/tidemark/worker"
)

// roles says what a process is.
type roles struct{ streamer, worker bool }

func (r roles) String() string {
	switch r {
	case roles{streamer: true}:
		return "streamer"
	case roles{worker: true}:
		return "worker"
	}
	return "run"
}

// The addresses of the page of health, status and metrics that nobody has set.
const (
	defaultStreamerPage = "127.0.0.1:7171"
	defaultWorkerPage   = "127.0.0.1:7172"
)

// process puts together what a long-running verb runs.
type process struct {
	cfg      *config.Config
	sys      system
	roles    roles
	instance string
	logger   *slog.Logger
	level    *slog.LevelVar // of logger
	health   *health
	uploads  *failedUploads
	stopping stopping
	metrics  *prometheus.Registry
	traces   *traces // nil: none
	client   client.Client
	tracker  *tracker.Tracker
	// findings are the preflight's, which was over at begun.
	findings []finding
	begun    time.Time

	// What follows is nil without the role of a streamer.
	streamer *streamer.Streamer
	observer *ops.StreamerObserver
	attempts *attempts
	operator *operator.Operator
}

// runProcess runs the parts that roles ask for until ctx ends, and stops them
// in order: the streamer first, while workers can still fetch and finish.
func runProcess(ctx context.Context, c *config.Config, sys system, r roles) error {
	logger, level := newLeveledLogger(c, sys)
	logger = logger.With("pipeline", c.Pipeline)
	p := &process{
		cfg: c, sys: sys, roles: r, logger: logger, level: level,
		instance: newInstance(),
		health:   &health{},
		uploads:  &failedUploads{},
		metrics:  ops.NewRegistry(readBuild().Version),
	}
	logger.Info("starting", "verb", r.String(), "version", readBuild().Version, "instance", p.instance)
	limitMemory(c, r, sys.environ, logger)
	told := context.AfterFunc(ctx, func() { p.stopping.begin(time.Now()) })
	err := p.run(ctx)
	told()
	if cause := context.Cause(ctx); cause != nil {
		logger.Info("stopped", "reason", cause)
	}
	return err
}

func (p *process) run(ctx context.Context) (err error) {
	if p.traces, err = newTraces(ctx, p.cfg, p.sys.environ, p.roles, p.instance, p.logger); err != nil {
		return refused(err)
	}
	defer p.traces.close()
	if p.client, err = lazyTemporal(p.cfg, p.sys.environ, sdkMetrics{library: ops.NewLibrary(p.metrics)}, p.logger, p.traces.interceptors()...); err != nil {
		return err
	}
	defer p.client.Close()
	eager := p.roles.streamer && p.roles.worker
	if p.tracker, err = newTracker(p.cfg, p.sys.environ, p.client, p.health, eager, p.logger); err != nil {
		return err
	}
	lake, findings, err := preflight(ctx, p.cfg, p.roles, p.tracker, p.logger)
	if ctx.Err() != nil {
		return nil // stopped as asked, before anything began
	}
	if err != nil {
		return err
	}

	p.findings, p.begun = findings, time.Now()
	var services []service
	at := segment.Location{Instance: p.instance}
	var streaming service
	if p.roles.streamer {
		p.observer = ops.NewStreamerObserver(p.metrics, p.cfg.Pipeline, streamer.Causes(), streamer.Endings())
		p.streamer, err = streamer.New(streamerConfig(p.cfg), streamer.Deps{
			Tracker: p.tracker, Lake: lake, Logger: p.logger, Observer: p.observer, Tracer: p.traces.ofStreamer(),
		})
		if err != nil {
			return refused(err)
		}
		data, err := flight.NewServer(dataServerConfig(p.cfg), p.streamer.Source(), p.logger)
		if err != nil {
			return refused(err)
		}
		defer data.Close()
		at.Address = data.Address()
		services = append(services, service{name: "the data plane", run: data.Run})
		streaming = service{name: "the streamer", run: func(ctx context.Context) error { return p.streamer.Run(ctx, at) }}
		p.metrics.MustRegister(ops.NewStreamerCollector(p.cfg.Pipeline, p.reading))
		if p.operator, err = newOperator(p.cfg, p.sys.environ, p.client, nil); err != nil {
			return err
		}
		p.attempts = &attempts{find: p.operator.Find, flights: func() []streamer.Flight { return p.streamer.Status().InFlight }}
	}
	if p.roles.worker {
		data, err := flight.NewClient(dataClientConfig(p.cfg), p.logger)
		if err != nil {
			return refused(err)
		}
		defer data.Close()
		acts := &activities.Activities{
			Source: func(loc segment.Location) (segment.Source, error) {
				if p.streamer != nil && loc.Instance == p.instance {
					return p.streamer.Source(), nil
				}
				return data.Source(loc)
			},
			Lake: lake, Logger: p.logger,
			Observer: watched{ops.NewWorkerObserver(p.metrics, p.cfg.Pipeline, classNames()), p.uploads},
			Tracer:   p.traces.ofWorker(),
			MaxBytes: uploadBytes(p.cfg),
		}
		if p.cfg.Worker.Toast == "lookup" {
			database := replicationConfig(p.cfg)
			if err := database.Validate(); err != nil {
				return refused(err)
			}
			reader := readback.New(database.Ordinary, replication.PinnedSettings())
			defer func() { reader.Close(context.WithoutCancel(ctx)) }()
			acts.ReadBack = reader
		}
		services = append(services, service{name: "the worker", run: func(ctx context.Context) error { return p.work(ctx, acts) }})
	}
	if streaming.run != nil {
		services = append(services, streaming)
	}
	page, err := p.page(ctx)
	if err != nil {
		return err
	}
	if page.run != nil {
		shown := []service{page}
		if p.attempts != nil {
			shown = append(shown, service{name: "the questions about attempts", run: p.attempts.run})
		}
		services = append(shown, services...)
	}
	return runServices(ctx, services...)
}

func (p *process) work(ctx context.Context, acts *activities.Activities) error {
	cfg := worker.Config{
		TaskQueue:   p.cfg.Temporal.TaskQueue,
		Concurrency: int(p.cfg.Worker.Concurrency),
		Drain:       orNone(p.cfg.Worker.DrainTimeout),
		BuildID:     readBuild().id(),
	}
	if p.streamer != nil {
		cfg.DrainLeft = func() time.Duration { return p.stopping.left(p.cfg.Streamer.ShutdownTimeout, time.Now()) }
	}
	return worker.Run(ctx, cfg, worker.Deps{Client: p.client, Activities: acts, Logger: p.logger})
}

// stopping is since when a process is being stopped. Safe for concurrent use.
type stopping struct {
	mu    sync.Mutex
	since time.Time
}

func (s *stopping) begin(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = now
}

// left is what is left of the time that a stop may take: all of it before one
// has begun.
func (s *stopping) left(atMost time.Duration, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		return atMost
	}
	return atMost - now.Sub(s.since)
}

// orNone turns a duration of zero, which our settings mean as it stands, into
// the negative one that packages streamer and worker mean by none.
func orNone(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

func streamerConfig(c *config.Config) streamer.Config {
	return streamer.Config{
		Pipeline:    c.Pipeline,
		Replication: replicationConfig(c),
		Tables:      c.Postgres.Tables,
		Ring: ring.Config{
			MaxBytes:     int64(c.Ring.MaxBytes),
			SegmentRows:  int(c.Segment.MaxRows),
			SegmentBytes: int64(c.Segment.MaxBytes),
			MaxAge:       c.Segment.MaxAge,
		},
		Messages:        c.Postgres.Messages,
		LocalOnly:       c.Postgres.Origin == "none",
		MaxInFlight:     int(c.Streamer.MaxInFlight),
		ShutdownTimeout: orNone(c.Streamer.ShutdownTimeout),
		WAL:             walLimits(c),
	}
}

func walLimits(c *config.Config) streamer.WALLimits {
	p := c.Postgres
	return streamer.WALLimits{WarnLeft: p.WALWarnLeft, AlarmLeft: p.WALAlarmLeft,
		WarnRetained: int64(p.WALWarnRetained), AlarmRetained: int64(p.WALAlarmRetained)}
}

// newInstance names this process, as no other ever is: workers tell by it
// whether they are in the streamer's own process.
func newInstance() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), rand.Text()[:8])
}
