package stack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/proc"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/s3gateway"
)

// S3Options say which S3 gateway to run.
type S3Options struct {
	// Bucket is made when it is not there; empty is "lake".
	Bucket string
	// Folder is served; its subfolders are the buckets. Empty is "s3" in the
	// stack's folder.
	Folder string
	// Port on 127.0.0.1; zero is a free one.
	Port int
}

// S3 is the stack's S3 gateway. Its methods are not safe for concurrent use.
type S3 struct {
	cfg    s3gateway.Config
	bucket string
	log    string
	proc   *proc.Process
}

// NewS3 makes the folder in dir and chooses the port; Start does the rest.
func NewS3(dir string, opt S3Options) (*S3, error) {
	if err := fill(&opt.Port); err != nil {
		return nil, err
	}
	if opt.Bucket == "" {
		opt.Bucket = "lake"
	}
	if opt.Folder == "" {
		opt.Folder = filepath.Join(dir, "s3")
	}
	folder, err := filepath.Abs(opt.Folder)
	if err != nil {
		return nil, fmt.Errorf("make the folder of the S3 gateway: %w", err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of the S3 gateway: %w", err)
	}
	return &S3{
		cfg: s3gateway.Config{
			Root: folder, Address: fmt.Sprintf("127.0.0.1:%d", opt.Port), Region: "us-east-1",
			AccessKey: "tidemark", SecretKey: rand.Text(),
		},
		bucket: opt.Bucket, log: filepath.Join(dir, "s3.log"),
	}, nil
}

// Address is the gateway's host:port.
func (s *S3) Address() string { return s.cfg.Address }

// Endpoint is the gateway's URL.
func (s *S3) Endpoint() string { return "http://" + s.cfg.Address }

// Bucket is the one that Start makes.
func (s *S3) Bucket() string { return s.bucket }

// Region is the gateway's.
func (s *S3) Region() string { return s.cfg.Region }

// Folder is the bucket's folder: an object's key is its path below it.
func (s *S3) Folder() string { return filepath.Join(s.cfg.Root, s.bucket) }

// Env holds the credentials, as AWS clients read them from the environment.
func (s *S3) Env() []string {
	return []string{"AWS_ACCESS_KEY_ID=" + s.cfg.AccessKey, "AWS_SECRET_ACCESS_KEY=" + s.cfg.SecretKey}
}

// Client is a new client of the gateway, or of what stands before it at
// endpoint; empty is the gateway's own.
func (s *S3) Client(endpoint string) *s3.Client {
	if endpoint == "" {
		endpoint = s.Endpoint()
	}
	return s3.New(s3.Options{
		Region:       s.cfg.Region,
		BaseEndpoint: &endpoint,
		UsePathStyle: true,
		Credentials:  credentials.NewStaticCredentialsProvider(s.cfg.AccessKey, s.cfg.SecretKey, ""),
		Retryer:      aws.NopRetryer{},
	})
}

// Start starts the gateway, waits until it answers and makes its bucket.
func (s *S3) Start(ctx context.Context) error {
	if s.proc != nil && s.proc.Running() {
		return nil
	}
	p, err := startChild(s3Child, s.log, s.cfg)
	if err != nil {
		return err
	}
	s.proc = p
	return p.Ready(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		if err := answers(ctx, s.Endpoint()+s3gateway.HealthPath); err != nil {
			return err
		}
		return s.makeBucket(ctx)
	})
}

func (s *S3) makeBucket(ctx context.Context) error {
	_, err := s.Client("").CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &s.bucket})
	var owned *types.BucketAlreadyOwnedByYou
	var exists *types.BucketAlreadyExists
	if err != nil && !errors.As(err, &owned) && !errors.As(err, &exists) {
		return fmt.Errorf("make bucket %s at %s: %w", s.bucket, s.Endpoint(), err)
	}
	return nil
}

// Stop stops the gateway. Its folder stays.
func (s *S3) Stop() error {
	if s.proc == nil {
		return nil
	}
	return s.proc.Stop(90 * time.Second)
}

// Kill ends the gateway with SIGKILL.
func (s *S3) Kill() error {
	if s.proc == nil {
		return nil
	}
	return s.proc.Kill9()
}

// Restart stops the gateway and starts it again, at the same address.
func (s *S3) Restart(ctx context.Context) error {
	if err := s.Stop(); err != nil {
		return err
	}
	return s.Start(ctx)
}

// ReplaceKeys gives the gateway's only account another key, and starts the
// gateway again with it. Env and Client have the new one.
func (s *S3) ReplaceKeys(ctx context.Context) error {
	if err := s.Stop(); err != nil {
		return err
	}
	s.cfg.AccessKey, s.cfg.SecretKey = "tidemark-"+rand.Text()[:8], rand.Text()
	return s.Start(ctx)
}

// Running says whether the gateway's process is there.
func (s *S3) Running() bool { return s.proc != nil && s.proc.Running() }

// PID is the gateway's process ID; zero before the first Start.
func (s *S3) PID() int {
	if s.proc == nil {
		return 0
	}
	return s.proc.PID()
}

// Log is the path of the gateway's log.
func (s *S3) Log() string { return s.log }
