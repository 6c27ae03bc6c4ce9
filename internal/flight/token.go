package flight

import (
	"context"
	"log/slog"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/tidemark-cdc/tidemark/internal/bearer"
)

// tokenHeader carries "Bearer <token>" with each call.
const (
	tokenHeader = "authorization"
	tokenPrefix = "Bearer "
)

// newTokens follows the data plane's token file.
func newTokens(path string, log *slog.Logger) (*bearer.Tokens, error) {
	return bearer.Follow("the token file of the data plane (data.token_file)", path, log)
}

// checkToken refuses a call without one of the tokens.
func checkToken(ctx context.Context, tokens *bearer.Tokens, log *slog.Logger) error {
	md, _ := metadata.FromIncomingContext(ctx)
	got := md.Get(tokenHeader)
	if len(got) == 1 && strings.HasPrefix(got[0], tokenPrefix) {
		ok, err := tokens.Accepts(got[0][len(tokenPrefix):])
		if err != nil {
			return status.Error(codes.Unavailable, "the streamer cannot read its token file")
		}
		if ok {
			return nil
		}
	}
	from := "unknown"
	if p, ok := peer.FromContext(ctx); ok {
		from = p.Addr.String()
	}
	if len(got) == 0 {
		log.Warn("turned away a caller of the data plane without a token", "peer", from)
		return status.Error(codes.Unauthenticated, "it wants a token and got none")
	}
	log.Warn("turned away a caller of the data plane with a wrong token", "peer", from)
	return status.Error(codes.Unauthenticated, "the token is not the one it expects")
}

// sendToken is the client's side of checkToken.
type sendToken struct {
	tokens *bearer.Tokens
	// plain allows a connection without TLS: on this machine, or because the
	// user said so.
	plain bool
}

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (s sendToken) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	token, err := s.tokens.First()
	if err != nil {
		return nil, status.Error(codes.Unauthenticated, err.Error())
	}
	return map[string]string{tokenHeader: tokenPrefix + token}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials: without
// TLS, gRPC refuses to send the token.
func (s sendToken) RequireTransportSecurity() bool { return !s.plain }
