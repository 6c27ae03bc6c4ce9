package flight

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// ErrUnreachable is in the errors of a Client that could not connect to the
// streamer, or lost the connection. Another try later, or at another streamer,
// can succeed.
var ErrUnreachable = errors.New("the streamer cannot be reached from this worker")

// ErrDenied is in the errors of a Client that the streamer has turned away: no
// token, or another one.
var ErrDenied = errors.New("the streamer does not accept this worker's token")

// errorDomain is that of the ErrorInfo details.
const errorDomain = "tidemark"

// maxErrorText bounds what a status says, in bytes: it travels in an HTTP/2
// header, which proxies limit to a few kilobytes.
const maxErrorText = 2048

// reasons are the errors that have a name on the wire.
var reasons = []struct {
	err    error
	reason string
	code   codes.Code
}{
	{segment.ErrNotYet, "NOT_YET", codes.Unavailable},
	{segment.ErrGone, "GONE", codes.NotFound},
	{segment.ErrUnknown, "UNKNOWN", codes.NotFound},
}

// toStatus gives the status that tells the other side of err.
func toStatus(err error) error {
	text := err.Error()
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + " ..."
	}
	for _, r := range reasons {
		if !errors.Is(err, r.err) {
			continue
		}
		st := status.New(r.code, text)
		if d, derr := st.WithDetails(&errdetails.ErrorInfo{Reason: r.reason, Domain: errorDomain}); derr == nil {
			st = d
		}
		return st.Err()
	}
	switch {
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, text)
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, text)
	}
	return status.Error(codes.Internal, text)
}

// fromStatus turns what a stream from the streamer at address ended with into
// an error of this side. ctx is the stream's own; begun says that something had
// come already. An error that is no status comes back as it is.
func fromStatus(ctx context.Context, address string, begun bool, err error) error {
	if ctx.Err() != nil {
		// What the stream says then is only a consequence.
		return context.Cause(ctx)
	}
	st, ok := status.FromError(err)
	if !ok {
		return err
	}
	for _, d := range st.Details() {
		info, ok := d.(*errdetails.ErrorInfo)
		if !ok || info.GetDomain() != errorDomain {
			continue
		}
		for _, r := range reasons {
			if r.reason == info.GetReason() {
				return &remoteError{text: st.Message(), is: r.err}
			}
		}
	}
	switch st.Code() {
	case codes.DeadlineExceeded:
		return fmt.Errorf("%w: %s", context.DeadlineExceeded, st.Message())
	case codes.Unavailable:
		if begun {
			return fmt.Errorf("%w any more: the connection was lost in the middle of the rows: %s", ErrUnreachable, st.Message())
		}
		return fmt.Errorf("%w: check that it runs, that data.advertise (%s) is an address by which this machine can reach it, and that both sides use TLS or neither does: %s", ErrUnreachable, address, st.Message())
	case codes.Unauthenticated, codes.PermissionDenied:
		return fmt.Errorf("%w: give both the same data.token_file: %s", ErrDenied, st.Message())
	case codes.InvalidArgument, codes.Unimplemented:
		return fmt.Errorf("%w: %s", ErrProtocol, st.Message())
	}
	return fmt.Errorf("the streamer failed: %s (%s)", st.Message(), st.Code())
}

// remoteError is an error of the streamer's with its own words, recognizable
// by errors.Is on this side.
type remoteError struct {
	text string
	is   error
}

func (e *remoteError) Error() string {
	if e.text == "" {
		return e.is.Error()
	}
	return e.text
}

func (e *remoteError) Unwrap() error { return e.is }
