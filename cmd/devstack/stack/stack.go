package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Options say what to start. The zero Options are all three servers on free
// ports in a temporary folder.
type Options struct {
	// Dir is the stack's folder, kept by Close. Empty is a temporary one that
	// Close removes.
	Dir      string
	Temporal TemporalOptions
	S3       S3Options
	Postgres PostgresOptions
	// Faults puts a FaultProxy before the S3 gateway.
	Faults bool
	// Bound is how long all servers together may take to get ready; zero is four
	// minutes.
	Bound time.Duration
	// Progress, when set, is told in a sentence what is going on. It is called
	// from one goroutine.
	Progress func(string)
}

// Stack is the three servers. Each is used through its own field.
type Stack struct {
	Temporal *Temporal
	S3       *S3
	Postgres *Postgres
	// Faults is nil unless Options asked for it.
	Faults *FaultProxy

	dir       string
	temporary bool
}

// Start starts the servers and waits until each is ready. When one cannot be
// started those that were are stopped.
func Start(ctx context.Context, opt Options) (*Stack, error) {
	for try := 1; ; try++ {
		s, err := start(ctx, opt)
		// Between the choice of a port and its use another process can take it.
		if err == nil || try == 3 || !strings.Contains(err.Error(), "address already in use") {
			return s, err
		}
	}
}

func start(ctx context.Context, opt Options) (_ *Stack, err error) {
	if opt.Progress == nil {
		opt.Progress = func(string) {}
	}
	if opt.Bound == 0 {
		opt.Bound = 4 * time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, opt.Bound)
	defer cancel()

	s := &Stack{dir: opt.Dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.dir == "" {
		s.dir, err = os.MkdirTemp("", "tidemark-stack-")
		s.temporary = true
	} else if s.dir, err = filepath.Abs(s.dir); err == nil {
		err = os.MkdirAll(s.dir, 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("make the stack's folder: %w", err)
	}
	// The user that Postgres runs as under root has to get to its cluster.
	if err := os.Chmod(s.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the stack's folder: %w", err)
	}
	if s.Temporal, err = newTemporal(s.dir, opt.Temporal); err != nil {
		return nil, err
	}
	if s.S3, err = NewS3(s.dir, opt.S3); err != nil {
		return nil, err
	}
	if opt.Postgres.Dir == "" && !s.temporary {
		opt.Postgres.Dir = filepath.Join(s.dir, "postgres")
	}
	if s.Postgres, err = NewPostgres(opt.Postgres); err != nil {
		return nil, err
	}
	if err := s.startAll(ctx, opt); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Stack) startAll(ctx context.Context, opt Options) error {
	steps := []struct {
		name  string
		start func(context.Context) error
	}{
		{fmt.Sprintf("Postgres %d", s.Postgres.Version()), s.Postgres.Start},
		{"the S3 gateway", s.S3.Start},
		{"Temporal", s.Temporal.Start},
	}
	for _, step := range steps {
		begin := time.Now()
		opt.Progress("starting " + step.name)
		if err := step.start(ctx); err != nil {
			return fmt.Errorf("start %s: %w", step.name, err)
		}
		opt.Progress(fmt.Sprintf("%s is ready after %.1fs", step.name, time.Since(begin).Seconds()))
	}
	if opt.Faults {
		p, err := NewFaultProxy(s.S3.Address())
		if err != nil {
			return err
		}
		s.Faults = p
	}
	return nil
}

// Dir is the stack's folder.
func (s *Stack) Dir() string { return s.dir }

// LakeEndpoint is where a lake's S3 client connects to: the fault proxy, or the
// gateway when there is none.
func (s *Stack) LakeEndpoint() string {
	if s.Faults != nil {
		return s.Faults.Endpoint()
	}
	return s.S3.Endpoint()
}

// Env are the variables, as NAME=value, with which tidemark, the temporal CLI,
// AWS clients and psql find this stack.
func (s *Stack) Env() []string {
	return append(s.S3.Env(),
		"AWS_REGION="+s.S3.Region(),
		"AWS_ENDPOINT_URL_S3="+s.LakeEndpoint(),
		"TEMPORAL_ADDRESS="+s.Temporal.Address(),
		"TEMPORAL_NAMESPACE="+s.Temporal.Namespace(),
		"DATABASE_URL="+s.Postgres.URL(),
	)
}

// Watch returns nil when ctx ends, and an error when a server ends by itself
// before.
func (s *Stack) Watch(ctx context.Context) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		switch {
		case !s.Postgres.Running():
			return fmt.Errorf("postgres ended by itself; its log is %s", s.Postgres.Log())
		case !s.S3.Running():
			return fmt.Errorf("the S3 gateway ended by itself; the end of its log:\n%s", s.S3.proc.Tail(20))
		case !s.Temporal.Running():
			return fmt.Errorf("temporal ended by itself; the end of its log:\n%s", s.Temporal.proc.Tail(20))
		}
	}
}

// Close stops what runs and removes the folder if it was temporary. Postgres is
// stopped without waiting for the receivers of its walsenders.
func (s *Stack) Close() error {
	var errs []error
	if s.Faults != nil {
		errs = append(errs, s.Faults.Close())
	}
	if s.Postgres != nil {
		errs = append(errs, s.Postgres.Close())
	}
	if s.S3 != nil {
		errs = append(errs, s.S3.Stop())
	}
	if s.Temporal != nil {
		errs = append(errs, s.Temporal.Stop())
	}
	if s.temporary {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}
