package lake

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// DefaultTimeout is Config.Timeout's default.
const DefaultTimeout = 30 * time.Second

// Config says where the lake is and how to talk to it. Only URL is required;
// everything but URL and Conditional is for S3 and ignored by other lakes. It
// holds no credential: those come from AWS' default chain (environment, shared
// files, web identity, container and instance roles).
type Config struct {
	// URL is s3://bucket/prefix or file:///folder.
	URL string
	// Endpoint is the http(s) URL of a store other than AWS. Empty: AWS, or
	// what AWS' own configuration says.
	Endpoint string
	// Region of the bucket. Empty: what AWS' own configuration says, and
	// us-east-1 with an Endpoint.
	Region string
	// PathStyle puts the bucket in the path rather than in the host name.
	// Nil: true if and only if there is an endpoint.
	PathStyle *bool
	// Checksum is "when_required" or "when_supported". Empty: "when_required"
	// with an endpoint, since many stores do not know AWS' newer checksums,
	// else "when_supported".
	Checksum string
	// SSE is the encryption at rest that objects are written with: "" (the
	// bucket's default), "AES256" or "aws:kms".
	SSE string
	// KMSKeyID is the key for aws:kms. Empty: the account's default key.
	KMSKeyID string
	// StorageClass of the Parquet objects, such as INTELLIGENT_TIERING. Empty:
	// the store's default. The records in _tidemark are always written with
	// the default, since they are replaced all the time.
	StorageClass string
	// Timeout bounds how long one request may take beyond what its bytes need
	// at 256 KiB/s; every attempt anew. Zero: DefaultTimeout.
	Timeout time.Duration
	// Conditional false turns conditional writes off for stores that lack
	// them, see Unconditional. Nil: true.
	Conditional *bool
}

// Validate says everything that is wrong with c, without opening the lake.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }

	if _, err := parseURL(c.URL); err != nil {
		errs = append(errs, err)
	}
	if c.Endpoint != "" {
		u, err := url.Parse(c.Endpoint)
		switch {
		// The text of the endpoint stays out of these: it may hold a password.
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
			bad("lake endpoint: want an http or https URL, such as https://minio.example.com:9000")
		case u.User != nil:
			bad("lake endpoint: it has a user name or password; leave them out: credentials come from the AWS configuration")
		case u.RawQuery != "" || u.Fragment != "":
			bad("lake endpoint: it has a query or fragment; leave them out")
		}
	}
	if !slices.Contains([]string{"", "when_required", "when_supported"}, c.Checksum) {
		bad("lake checksum %q: want when_required or when_supported", c.Checksum)
	}
	if !slices.Contains([]string{"", "AES256", "aws:kms"}, c.SSE) {
		bad("lake encryption %q: want AES256 or aws:kms, or nothing for the bucket's default", c.SSE)
	}
	if c.KMSKeyID != "" && c.SSE != "aws:kms" {
		bad("lake KMS key %q: it has no effect without the encryption aws:kms", c.KMSKeyID)
	}
	if slices.Contains([]string{"GLACIER", "DEEP_ARCHIVE"}, strings.ToUpper(c.StorageClass)) {
		bad("lake storage class %q: objects in it cannot be read back at once, which retries and verify need; let a lifecycle rule of the bucket move them later", c.StorageClass)
	}
	if c.Timeout < 0 {
		bad("lake timeout %s: want a positive duration, or 0 for %s", c.Timeout, DefaultTimeout)
	}
	return errors.Join(errs...)
}

// Open returns the lake that cfg names. It validates cfg and finds the
// credentials' source, and sends nothing to the store; see Lake.Check.
func Open(ctx context.Context, cfg Config) (*Lake, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("open lake: %w", err)
	}
	loc, err := parseURL(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("open lake: %w", err)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	var store Store
	if loc.dir != "" {
		store = NewFile(loc.dir)
	} else if store, err = newS3(ctx, loc, cfg); err != nil {
		return nil, fmt.Errorf("open lake %s: %w", loc, err)
	}
	if cfg.Conditional != nil && !*cfg.Conditional {
		store = Unconditional(store)
	}
	return New(loc.String(), store), nil
}

// Lake is a store together with the rules of what lies where in it. Safe for
// concurrent use.
type Lake struct {
	url   string
	store Store
}

// New returns the lake over a store. url is the canonical URL that the
// references of its segments carry.
func New(url string, store Store) *Lake { return &Lake{url: url, store: store} }

// URL is the lake's canonical URL: bucket and prefix, or folder. No secret.
func (l *Lake) URL() string { return l.url }

// Store is the store underneath.
func (l *Lake) Store() Store { return l.store }

// Check shows that the store can be reached and listed. That it can be written
// to is shown by whoever writes first: CreateIdentity, WriteAck.
func (l *Lake) Check(ctx context.Context) error {
	for _, err := range l.store.List(ctx, recordsFolder, "") {
		if err != nil {
			return fmt.Errorf("check lake: %w", err)
		}
		break
	}
	return nil
}
