package flight

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// tokenHeader carries "Bearer <token>" with each call.
const (
	tokenHeader = "authorization"
	tokenPrefix = "Bearer "
)

// newTokens follows a token file: one token a line. The streamer accepts each
// of them and a worker sends the first, so that a token can be replaced without
// a moment in which the two disagree: add the new one below the old one on
// both sides, swap them, remove the old one.
func newTokens(path string, log *slog.Logger) (*reloader[[]string], error) {
	return newReloader("the token file of the data plane (data.token_file)", []string{path}, log, func(files [][]byte) ([]string, error) {
		tokens := strings.Fields(string(files[0]))
		if len(tokens) == 0 {
			return nil, errors.New("it holds no token")
		}
		for _, t := range tokens {
			for i := range len(t) {
				if t[i] < 0x21 || t[i] > 0x7E {
					return nil, errors.New("a token holds a character that is not printable ASCII")
				}
			}
		}
		return tokens, nil
	})
}

// checkToken refuses a call without one of the tokens.
func checkToken(ctx context.Context, tokens *reloader[[]string], log *slog.Logger) error {
	want, err := tokens.get()
	if err != nil {
		return status.Error(codes.Unavailable, "the streamer cannot read its token file")
	}
	md, _ := metadata.FromIncomingContext(ctx)
	got := md.Get(tokenHeader)
	if len(got) == 1 && strings.HasPrefix(got[0], tokenPrefix) && oneOf(got[0][len(tokenPrefix):], want) {
		return nil
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

// oneOf compares in a time that depends on neither the contents nor, thanks to
// the hash, the lengths.
func oneOf(got string, want []string) bool {
	g := sha256.Sum256([]byte(got))
	found := 0
	for _, w := range want {
		h := sha256.Sum256([]byte(w))
		found |= subtle.ConstantTimeCompare(g[:], h[:])
	}
	return found == 1
}

// sendToken is the client's side of checkToken.
type sendToken struct {
	tokens *reloader[[]string]
	// plain allows a connection without TLS: on this machine, or because the
	// user said so.
	plain bool
}

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (s sendToken) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	tokens, err := s.tokens.get()
	if err != nil {
		return nil, status.Error(codes.Unauthenticated, err.Error())
	}
	return map[string]string{tokenHeader: tokenPrefix + tokens[0]}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials: without
// TLS, gRPC refuses to send the token.
func (s sendToken) RequireTransportSecurity() bool { return !s.plain }
