package flight

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/tidemark-cdc/tidemark/internal/bearer"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// ClientConfig says how a worker speaks to streamers.
//
// TLS is used if CAFile or CertFile is set. Otherwise a streamer on a loopback
// address is spoken to without it, and one on the network only with it, trusting
// the system's authorities, unless Insecure is set.
type ClientConfig struct {
	// CAFile is a PEM file of the authorities that sign streamers'
	// certificates. Empty: the system's.
	CAFile string
	// CertFile and KeyFile are the worker's own certificate and key, for
	// streamers that ask for one. Both or neither.
	CertFile, KeyFile string
	// ServerName is the name to expect in the streamer's certificate. Empty:
	// the host that the streamer advertises.
	ServerName string
	// TokenFile holds the token to send (its first line). Empty: none. A token
	// is sent over TLS, to a loopback address, or if Insecure is set; never
	// otherwise.
	TokenFile string
	// Insecure allows streamers on the network to be spoken to without TLS.
	Insecure bool

	// DialTimeout bounds an attempt to connect. Default: 10 s.
	DialTimeout time.Duration
	// IdleTimeout is how long a connection that nobody uses stays open.
	// Default: 1 min.
	IdleTimeout time.Duration

	// alive and answer are defaultAlive and defaultAnswer, but in tests.
	alive, answer time.Duration
}

const (
	defaultDialTimeout = 10 * time.Second
	defaultIdleTimeout = time.Minute
)

// Client fetches segments from streamers, over one connection for each. Safe
// for concurrent use.
type Client struct {
	cfg    ClientConfig
	tls    credentials.TransportCredentials // nil: only without TLS
	tokens *bearer.Tokens                   // nil: none
	pool   *pool
}

// NewClient reads the files that cfg names; its errors name the setting that is
// wrong. It connects to nothing yet. Close it in the end.
func NewClient(cfg ClientConfig, log *slog.Logger) (*Client, error) {
	if cfg.DialTimeout == 0 {
		cfg.DialTimeout = defaultDialTimeout
	}
	if cfg.IdleTimeout == 0 {
		cfg.IdleTimeout = defaultIdleTimeout
	}
	if cfg.alive == 0 {
		cfg.alive, cfg.answer = defaultAlive, defaultAnswer
	}
	if (cfg.CertFile == "") != (cfg.KeyFile == "") {
		return nil, errors.New("data plane: data.tls_cert and data.tls_key go together: set both or neither")
	}
	c := &Client{cfg: cfg}
	var err error
	if c.tls, err = newClientTLS(cfg.CAFile, cfg.CertFile, cfg.KeyFile, log); err != nil {
		return nil, fmt.Errorf("data plane: %w", err)
	}
	if cfg.TokenFile != "" {
		if c.tokens, err = newTokens(cfg.TokenFile, log); err != nil {
			return nil, fmt.Errorf("data plane: %w", err)
		}
	}
	c.pool = newPool(cfg.IdleTimeout, c.dial)
	return c, nil
}

// Close closes all connections; Readers that are still open end with an error.
func (c *Client) Close() error { return c.pool.close() }

// Source gives the segments of the streamer at loc. It connects to nothing yet
// and needs no closing.
func (c *Client) Source(loc segment.Location) (segment.Source, error) {
	if _, port, err := net.SplitHostPort(loc.Address); err != nil || port == "" {
		return nil, fmt.Errorf("data plane: the streamer's address %q is not host:port: check its data.advertise", loc.Address)
	}
	return &source{client: c, address: loc.Address}, nil
}

// dial makes a connection that connects when it is first used.
func (c *Client) dial(address string) (*grpc.ClientConn, error) {
	plain := c.cfg.CAFile == "" && c.cfg.CertFile == "" && (c.cfg.Insecure || isLoopback(address))
	creds := c.tls
	if plain {
		creds = insecure.NewCredentials()
	}
	opts := []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: c.cfg.alive, Timeout: c.cfg.answer}),
		grpc.WithIdleTimeout(c.cfg.IdleTimeout),
		grpc.WithConnectParams(grpc.ConnectParams{
			MinConnectTimeout: c.cfg.DialTimeout,
			// Attempts are repeated by whoever fetches, at its own pace.
			Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
		}),
		grpc.WithInitialWindowSize(window),
		grpc.WithInitialConnWindowSize(2 * window),
		grpc.WithReadBufferSize(socketBuffer),
		// Rows do not go through a proxy by accident of the environment.
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
	}
	if c.cfg.ServerName != "" && !plain {
		opts = append(opts, grpc.WithAuthority(c.cfg.ServerName))
	}
	if c.tokens != nil {
		opts = append(opts, grpc.WithPerRPCCredentials(sendToken{tokens: c.tokens, plain: plain}))
	}
	return grpc.NewClient("passthrough:///"+address, opts...)
}

// isLoopback says whether address can only be on this machine.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// source is the Source of one streamer.
type source struct {
	client  *Client
	address string
}

// Fetch implements segment.Source. It waits for the first changes, so that most
// errors come from here.
func (s *source) Fetch(ctx context.Context, t segment.Ticket) (segment.Reader, error) {
	r, err := s.fetch(ctx, t)
	if err != nil {
		return nil, fetchError(t, s.address, err)
	}
	return r, nil
}

func (s *source) fetch(ctx context.Context, t segment.Ticket) (_ *reader, err error) {
	b, err := encodeTicket(t)
	if err != nil {
		return nil, err
	}
	conn, release, err := s.client.pool.get(s.address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		if err != nil {
			cancel()
			release()
		}
	}()
	stream, err := flight.NewFlightServiceClient(conn).DoGet(ctx, &flight.Ticket{Ticket: b})
	if err != nil {
		return nil, fromStatus(ctx, s.address, false, err)
	}
	d, err := newDecoder(stream)
	if err != nil {
		return nil, fromStatus(ctx, s.address, false, err)
	}
	return &reader{
		dec:     d,
		address: s.address,
		ticket:  t,
		failed:  func(err error) error { return fromStatus(ctx, s.address, true, err) },
		end:     func() { d.close(); cancel(); release() },
	}, nil
}

func fetchError(t segment.Ticket, address string, err error) error {
	return fmt.Errorf("fetch segment %s of pipeline %s from the streamer at %s: %w", t.First, t.Pipeline, address, err)
}
