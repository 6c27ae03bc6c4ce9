package lake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/logging"
)

// S3 is a Store over a bucket and a prefix.
type S3 struct {
	client      *s3.Client
	credentials *chain
	loc         location
	cfg         Config
}

// maxConnections bounds the idle connections that are kept to the store.
const maxConnections = 64

// newS3 makes the client out of AWS' default configuration and cfg, which has
// been validated and has its Timeout.
func newS3(ctx context.Context, loc location, cfg Config) (*S3, error) {
	// A buildable client is what lets AWS_CA_BUNDLE have its effect.
	transport := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConnsPerHost = maxConnections
	})
	options := []func(*awsconfig.LoadOptions) error{awsconfig.WithHTTPClient(transport)}
	if cfg.Region != "" {
		options = append(options, awsconfig.WithRegion(cfg.Region))
	}
	awsCfg, err := awsconfig.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("read the AWS configuration: %w", err)
	}
	credentials := &chain{now: awsCfg.Credentials, walk: func(ctx context.Context) (aws.CredentialsProvider, error) {
		again, err := awsconfig.LoadDefaultConfig(ctx, options...)
		return again.Credentials, err
	}}
	var region string
	client := s3.NewFromConfig(awsCfg, func(o *s3.Options) {
		o.Credentials = credentials
		if cfg.Endpoint != "" {
			o.BaseEndpoint = aws.String(cfg.Endpoint)
		}
		custom := o.BaseEndpoint != nil
		o.UsePathStyle = custom
		if cfg.PathStyle != nil {
			o.UsePathStyle = *cfg.PathStyle
		}
		if o.Region == "" && custom {
			o.Region = "us-east-1"
		}
		if cfg.Checksum == "when_required" || cfg.Checksum == "" && custom {
			o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
			o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		} else {
			o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenSupported
			o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenSupported
		}
		// Ours, in the standard mode, whatever the environment asks for: the
		// long retries are Temporal's.
		o.RetryMode = aws.RetryModeStandard
		o.Retryer = newRetryer()
		// The SDK's own notes go to standard error otherwise; its errors come to
		// us anyway.
		o.Logger = logging.Nop{}
		o.HTTPClient = boundedClient{client: o.HTTPClient, timeout: cfg.Timeout}
		region = o.Region
	})
	if region == "" {
		return nil, errors.New("no region is known: set the lake's region or AWS_REGION")
	}
	return &S3{client: client, credentials: credentials, loc: loc, cfg: cfg}, nil
}

// newRetryer is the SDK's standard one (three attempts, jittered backoff, a
// quota), with two rules before its own.
func newRetryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.Retryables = append([]retry.IsErrorRetryable{
			// A store that says when to come again is not asked before: the
			// caller is told (Failure.RetryAfter).
			retry.IsErrorRetryableFunc(func(err error) aws.Ternary {
				if retryAfter(err) > 0 {
					return aws.FalseTernary
				}
				return aws.UnknownTernary
			}),
			// S3 answers 409 when another conditional write of the key is
			// under way, and asks to send the request again: the next answer
			// says who was first. Source: Amazon S3 User Guide, "How to
			// prevent object overwrites with conditional writes".
			retry.RetryableErrorCode{Codes: map[string]struct{}{
				"ConditionalRequestConflict": {},
				"OperationAborted":           {},
			}},
		}, o.Retryables...)
	})
}

// Put is Store's.
func (s *S3) Put(ctx context.Context, key string, body []byte, cond Condition) (string, error) {
	if err := checkKey(key); err != nil {
		return "", s.fail(ctx, "write", key, err)
	}
	in := &s3.PutObjectInput{
		Bucket:        aws.String(s.loc.bucket),
		Key:           aws.String(s.key(key)),
		Body:          bytes.NewReader(body),
		ContentLength: aws.Int64(int64(len(body))),
		ContentType:   aws.String("application/json"),
	}
	if strings.HasSuffix(key, ".parquet") {
		in.ContentType = aws.String("application/vnd.apache.parquet")
		in.StorageClass = types.StorageClass(s.cfg.StorageClass)
	}
	if s.cfg.SSE != "" {
		in.ServerSideEncryption = types.ServerSideEncryption(s.cfg.SSE)
	}
	if s.cfg.KMSKeyID != "" {
		in.SSEKMSKeyId = aws.String(s.cfg.KMSKeyID)
	}
	if cond.IfNoneMatch {
		in.IfNoneMatch = aws.String("*")
	}
	if cond.IfMatch != "" {
		in.IfMatch = aws.String(cond.IfMatch)
	}
	out, err := s.client.PutObject(ctx, in)
	if err != nil {
		err = s.fail(ctx, "write", key, err)
		// S3 answers a write with If-Match of an object that is not there with
		// 404.
		if cond.IfMatch != "" && errors.Is(err, ErrNotFound) {
			return "", &Error{Op: "write", Object: s.url(key), Kind: Precondition, Err: ErrPrecondition}
		}
		return "", err
	}
	return aws.ToString(out.ETag), nil
}

// Get is Store's.
func (s *S3) Get(ctx context.Context, key string) ([]byte, string, error) {
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{
		Bucket: aws.String(s.loc.bucket), Key: aws.String(s.key(key)),
	})
	if err != nil {
		return nil, "", s.fail(ctx, "read", key, err)
	}
	defer out.Body.Close()
	body, err := io.ReadAll(out.Body)
	if err != nil {
		return nil, "", s.fail(ctx, "read", key, &bodyError{err})
	}
	return body, aws.ToString(out.ETag), nil
}

// GetRange is Store's.
func (s *S3) GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	if offset < 0 || length <= 0 {
		return nil, s.fail(ctx, "read", key, fmt.Errorf("%d bytes from %d on: %w", length, offset, io.ErrUnexpectedEOF))
	}
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{
		Bucket: aws.String(s.loc.bucket), Key: aws.String(s.key(key)),
		Range: aws.String(fmt.Sprintf("bytes=%d-%d", offset, offset+length-1)),
	})
	if err != nil {
		return nil, s.fail(ctx, "read", key, err)
	}
	defer out.Body.Close()
	if got := aws.ToInt64(out.ContentLength); got != length {
		return nil, s.fail(ctx, "read", key, fmt.Errorf("got %d of %d bytes from %d on: %w", got, length, offset, io.ErrUnexpectedEOF))
	}
	b := make([]byte, length)
	if _, err := io.ReadFull(out.Body, b); err != nil {
		return nil, s.fail(ctx, "read", key, &bodyError{err})
	}
	return b, nil
}

// Head is Store's.
func (s *S3) Head(ctx context.Context, key string) (Info, error) {
	out, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{
		Bucket: aws.String(s.loc.bucket), Key: aws.String(s.key(key)),
	})
	if err != nil {
		return Info{}, s.fail(ctx, "look for", key, err)
	}
	return Info{Key: key, Size: aws.ToInt64(out.ContentLength), Modified: aws.ToTime(out.LastModified)}, nil
}

// List is Store's. It asks for a thousand keys at a time.
func (s *S3) List(ctx context.Context, prefix, after string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		in := &s3.ListObjectsV2Input{Bucket: aws.String(s.loc.bucket), Prefix: aws.String(s.key(prefix))}
		if after != "" {
			in.StartAfter = aws.String(s.key(after))
		}
		pages := s3.NewListObjectsV2Paginator(s.client, in)
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(Info{}, s.fail(ctx, "list", prefix, err))
				return
			}
			for _, o := range page.Contents {
				key := strings.TrimPrefix(aws.ToString(o.Key), s.key(""))
				if !yield(Info{Key: key, Size: aws.ToInt64(o.Size), Modified: aws.ToTime(o.LastModified)}, nil) {
					return
				}
			}
		}
	}
}

// Remove is Store's.
func (s *S3) Remove(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return s.fail(ctx, "remove", key, err)
	}
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{
		Bucket: aws.String(s.loc.bucket), Key: aws.String(s.key(key)),
	})
	if err == nil {
		return nil
	}
	if err = s.fail(ctx, "remove", key, err); errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// key is the whole key of one that is relative to the lake's prefix.
func (s *S3) key(key string) string {
	if s.loc.prefix == "" {
		return key
	}
	return s.loc.prefix + "/" + key
}

func (s *S3) url(key string) string { return "s3://" + s.loc.bucket + "/" + s.key(key) }
