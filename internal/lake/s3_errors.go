package lake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	smithy "github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// fail makes what the SDK returned one of the package's errors. The SDK's own
// text repeats the operation and wraps several times; ours keeps the store's
// code and message and the request's ID, which a store's support asks for.
func (s *S3) fail(ctx context.Context, op, key string, err error) error {
	e := &Error{Op: op, Object: s.url(key), Kind: Unknown, Err: err, RetryAfter: retryAfter(err)}

	var api smithy.APIError
	var resp *smithyhttp.ResponseError
	status := 0
	if errors.As(err, &resp) {
		status = resp.HTTPStatusCode()
	}
	switch {
	case ctx.Err() != nil:
		// Asked of ctx, since a dial that timed out is also a "deadline
		// exceeded" to errors.Is.
		e.Kind, e.Err = Canceled, ctx.Err()
	case errors.As(err, &api):
		e.Kind, e.Hint = s.classify(api.ErrorCode(), status)
		e.Err = fmt.Errorf("%s (HTTP status %d%s)", describe(api), status, requestID(err))
	case isCredentials(err):
		e.Kind = Denied
		e.Hint = "no usable AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or give this machine a role"
		e.Err = rootCause(err)
	case status >= 300:
		e.Kind, e.Hint = s.classify("", status)
		e.Err = fmt.Errorf("HTTP status %d", status)
	case isTransport(err):
		e.Kind = Unreachable
		e.Hint = "check the lake's endpoint and region, and the network between"
		e.Err = rootCause(err)
	}
	switch {
	case e.Kind == Missing:
		e.Err = ErrNotFound
	case e.Kind == Precondition:
		e.Err = ErrPrecondition
	case status == http.StatusRequestedRangeNotSatisfiable:
		e.Kind, e.Hint, e.Err = Unknown, "", fmt.Errorf("the object is smaller: %w", io.ErrUnexpectedEOF)
	case e.Kind == Denied:
		s.credentials.refused()
	}
	return e
}

// classify sorts a store's answer by its code, and by its status where the
// code says nothing (HEAD has no body).
func (s *S3) classify(code string, status int) (FailureKind, string) {
	switch code {
	case "NoSuchBucket":
		return MissingBucket, fmt.Sprintf("make the bucket %q, or correct the lake's URL, endpoint or region", s.loc.bucket)
	case "NoSuchKey", "NotFound":
		return Missing, ""
	case "PreconditionFailed":
		return Precondition, ""
	case "ConditionalRequestConflict", "OperationAborted":
		return Unavailable, "another write of the same object is under way: try again"
	case "SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequests", "BandwidthLimitExceeded":
		return Throttled, "the store asks for fewer requests: lower the number of concurrent uploads if this goes on"
	case "RequestTimeTooSkewed":
		return Misconfigured, "set this machine's clock"
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "XAdminUserNotFound":
		// The last is what a VersityGW says of an unknown key, with status 404.
		return Denied, "the AWS credentials in use are wrong or have expired: renew them; files and roles are read again before the next attempt, environment variables by another process only"
	case "PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
		return Misconfigured, fmt.Sprintf("the bucket %q seems to be in another region: set the lake's region", s.loc.bucket)
	case "InvalidStorageClass":
		return Misconfigured, fmt.Sprintf("the store does not know the storage class %q", s.cfg.StorageClass)
	case "NotImplemented":
		return Misconfigured, "the store lacks something that was asked for: turn conditional writes off, or set checksums to when_required"
	case "InvalidObjectState":
		return Misconfigured, "the object is in an archive class: restore it first"
	case "QuotaExceeded", "XMinioStorageFull", "InsufficientCapacity", "XMinioAdminBucketQuotaExceeded":
		return Full, "make room in the store"
	}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return Denied, fmt.Sprintf("let the credentials in use do s3:GetObject, s3:PutObject and s3:ListBucket on the bucket %q", s.loc.bucket)
	case status == http.StatusNotFound && (code == "" || code == "UnknownError"):
		// With another code it is something else that is not there: taken for a
		// missing object, it would make a lake look empty.
		return Missing, ""
	case status == http.StatusPreconditionFailed:
		return Precondition, ""
	case status == http.StatusTooManyRequests:
		return Throttled, "the store asks for fewer requests: lower the number of concurrent uploads if this goes on"
	case status == http.StatusInsufficientStorage:
		return Full, "make room in the store"
	case status == http.StatusMovedPermanently || status == http.StatusTemporaryRedirect:
		return Misconfigured, fmt.Sprintf("the bucket %q seems to be in another region: set the lake's region", s.loc.bucket)
	case status >= 500:
		return Unavailable, "the store has a problem: see its own status"
	case status == http.StatusRequestTimeout:
		return Unreachable, "check the network to the store"
	case status >= 400:
		return Misconfigured, "the store refuses the request: compare the lake's settings with what the store knows"
	}
	return Unknown, ""
}

// describe is the store's code and message.
func describe(api smithy.APIError) string {
	code, message := api.ErrorCode(), api.ErrorMessage()
	if message == "" || message == code {
		return code
	}
	return code + ": " + message
}

func requestID(err error) string {
	var r interface{ ServiceRequestID() string }
	if errors.As(err, &r) && r.ServiceRequestID() != "" {
		return ", request " + r.ServiceRequestID()
	}
	return ""
}

// retryAfter is how long the store asked us to wait, from the standard header
// (seconds or a date) or Amazon's own (milliseconds).
func retryAfter(err error) time.Duration {
	var resp *smithyhttp.ResponseError
	if !errors.As(err, &resp) || resp.Response == nil {
		return 0
	}
	h := resp.Response.Header
	if ms, err := strconv.Atoi(h.Get("X-Amz-Retry-After")); err == nil && ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	v := h.Get("Retry-After")
	if sec, err := strconv.Atoi(v); err == nil && sec > 0 {
		return time.Duration(sec) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		// Against the store's own clock, if it told us.
		now, err := http.ParseTime(h.Get("Date"))
		if err != nil {
			now = time.Now()
		}
		return max(0, at.Sub(now))
	}
	return 0
}

// isTransport says that there was no answer, or half of one.
func isTransport(err error) bool {
	var send *smithyhttp.RequestSendError
	var body *bodyError
	var timeout *timeoutError
	var netErr net.Error
	return errors.As(err, &send) || errors.As(err, &body) || errors.As(err, &timeout) || errors.As(err, &netErr)
}

// isCredentials says that the request was not even signed. The SDK has no type
// for it: the credentials' providers fail in a step whose text begins so.
func isCredentials(err error) bool {
	var op *smithy.OperationError
	return errors.As(err, &op) && strings.HasPrefix(op.Err.Error(), "get identity: ")
}

// rootCause is the innermost error, without the SDK's frames.
func rootCause(err error) error {
	for {
		// This one says which address was dialed.
		if op, ok := err.(*net.OpError); ok {
			return op
		}
		next := errors.Unwrap(err)
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			next = joined.Unwrap()[0]
		}
		if next == nil {
			return err
		}
		err = next
	}
}
