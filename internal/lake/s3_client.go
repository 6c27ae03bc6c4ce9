package lake

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// slowest is the rate in bytes per second below which a request with a large
// body counts as hanging.
const slowest = 256 << 10

// boundedClient bounds every attempt of a request: what the request's bytes
// need at the slowest rate, plus timeout, from its start to its headers; and
// the same again for the answer's body.
type boundedClient struct {
	client  s3.HTTPClient
	timeout time.Duration
}

func (c boundedClient) bound(size int64) time.Duration {
	return c.timeout + time.Duration(max(size, 0))*time.Second/slowest
}

// Do sends one attempt.
func (c boundedClient) Do(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	bound := c.bound(req.ContentLength)
	timer := time.AfterFunc(bound, func() { cancel(&timeoutError{bound}) })
	resp, err := c.client.Do(req.WithContext(ctx))
	if err != nil {
		timer.Stop()
		err = causeOf(ctx, err)
		cancel(nil)
		return nil, err
	}
	if timer.Stop() {
		bound = c.bound(resp.ContentLength)
		timer = time.AfterFunc(bound, func() { cancel(&timeoutError{bound}) })
	}
	resp.Body = &boundedBody{ReadCloser: resp.Body, ctx: ctx, done: func() { timer.Stop(); cancel(nil) }}
	return resp, nil
}

// boundedBody is an answer's body that the attempt's bound ends.
type boundedBody struct {
	io.ReadCloser
	// ctx is the attempt's, which lives as long as the body is open.
	ctx  context.Context
	done func()
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = causeOf(b.ctx, err)
	}
	return n, err
}

func (b *boundedBody) Close() error {
	err := b.ReadCloser.Close()
	b.done()
	return err
}

// causeOf says of a call that the bound ended that it did.
func causeOf(ctx context.Context, err error) error {
	if t, ok := context.Cause(ctx).(*timeoutError); ok {
		return t
	}
	return err
}

// timeoutError: the store did not answer in time.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string {
	return fmt.Sprintf("no answer within %s", e.after.Round(time.Millisecond))
}

// Timeout is net.Error's.
func (e *timeoutError) Timeout() bool { return true }

// bodyError: the connection broke, or was too slow, while an answer was read.
// It does not wrap its cause, since an io.ErrUnexpectedEOF of the connection is
// not one of the object.
type bodyError struct{ err error }

func (e *bodyError) Error() string { return "the answer broke off: " + e.err.Error() }
