package flight

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// A peer that says nothing for defaultAlive is asked, and given up when it does
// not answer within defaultAnswer: a worker that vanished holds no rows for
// longer, and a fetch from a streamer that vanished ends.
const (
	defaultAlive  = 20 * time.Second
	defaultAnswer = 10 * time.Second
)

// Server offers the segments of a Source to workers. It is bound from NewServer
// on, so that its address can be told, and serves while Run runs.
type Server struct {
	cfg     ServerConfig
	source  segment.Source
	log     *slog.Logger
	lis     *net.TCPListener
	address string
	opts    []grpc.ServerOption
}

// NewServer binds to the configured address. Its errors name the setting that
// is wrong. A Server that is not going to Run must be closed.
func NewServer(cfg ServerConfig, source segment.Source, log *slog.Logger) (*Server, error) {
	s := &Server{cfg: cfg.withDefaults(), source: source, log: log}
	if err := s.init(); err != nil {
		return nil, fmt.Errorf("data plane: %w", err)
	}
	return s, nil
}

func (s *Server) init() error {
	cfg := s.cfg
	if err := cfg.validate(); err != nil {
		return err
	}
	s.opts = []grpc.ServerOption{
		// What comes in is a ticket.
		grpc.MaxRecvMsgSize(64 << 10),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: cfg.alive, Timeout: cfg.answer}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: defaultAlive / 4, PermitWithoutStream: true}),
		grpc.WaitForHandlers(true),
		grpc.WriteBufferSize(socketBuffer),
	}
	if cfg.CertFile != "" {
		creds, err := newServerTLS(cfg.CertFile, cfg.KeyFile, cfg.ClientCAFile, s.log)
		if err != nil {
			return err
		}
		s.opts = append(s.opts, grpc.Creds(creds))
	}
	if cfg.TokenFile != "" {
		tokens, err := newTokens(cfg.TokenFile, s.log)
		if err != nil {
			return err
		}
		s.opts = append(s.opts,
			grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
				if err := checkToken(ctx, tokens, s.log); err != nil {
					return nil, err
				}
				return h(ctx, req)
			}),
			grpc.StreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
				if err := checkToken(ss.Context(), tokens, s.log); err != nil {
					return err
				}
				return h(srv, ss)
			}))
	}
	lis, err := cfg.listen()
	if err != nil {
		return err
	}
	if s.address, err = cfg.advertise(lis.Addr().(*net.TCPAddr)); err != nil {
		return errors.Join(err, lis.Close())
	}
	s.lis = lis
	return nil
}

// Address is the host:port that workers can fetch from.
func (s *Server) Address() string { return s.address }

// Close frees the address of a Server that is not going to Run.
func (s *Server) Close() error {
	if err := s.lis.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("data plane: close %s: %w", s.lis.Addr(), err)
	}
	return nil
}

// Run serves until ctx ends, then lets running fetches finish, for as long as
// the grace period, and cuts the rest. It returns nil then, and an error if
// serving failed before. When it returns, no fetch runs any more. It can be
// called once.
func (s *Server) Run(ctx context.Context) error {
	g := grpc.NewServer(s.opts...)
	flight.RegisterFlightServiceServer(g, &service{source: s.source, log: s.log})
	s.log.Info("data plane serves", "listen", s.lis.Addr().String(), "advertise", s.address,
		"tls", s.cfg.CertFile != "", "token", s.cfg.TokenFile != "")

	served := make(chan error, 1)
	go func() { served <- g.Serve(s.lis) }()
	select {
	case err := <-served:
		g.Stop()
		return fmt.Errorf("data plane: serve on %s: %w", s.lis.Addr(), err)
	case <-ctx.Done():
	}

	stopped := make(chan struct{})
	go func() { g.GracefulStop(); close(stopped) }()
	grace := time.NewTimer(s.cfg.Grace)
	defer grace.Stop()
	select {
	case <-stopped:
	case <-grace.C:
		s.log.Warn("data plane cuts fetches that are still running", "grace", s.cfg.Grace)
		g.Stop()
		<-stopped
	}
	<-served
	return nil
}

// service is the Flight service.
type service struct {
	flight.BaseFlightServer
	source segment.Source
	log    *slog.Logger
}

// Handshake implements flight.FlightServer. The token travels with each call.
func (*service) Handshake(flight.FlightService_HandshakeServer) error {
	return status.Error(codes.Unimplemented, "the data plane has no handshake")
}

// DoGet implements flight.FlightServer.
func (s *service) DoGet(ft *flight.Ticket, stream flight.FlightService_DoGetServer) error {
	t, err := decodeTicket(ft.GetTicket())
	if err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	start := time.Now()
	total, err := s.serve(t, stream)
	log := s.log.With("pipeline", t.Pipeline, "segment", t.First.String(), "rows", total.Rows, "bytes", total.Bytes, "took", time.Since(start))
	if err != nil {
		log.Debug("a fetch ended with an error", "error", err)
		return toStatus(err)
	}
	log.Debug("a fetch was served")
	return nil
}

func (s *service) serve(t segment.Ticket, stream flight.FlightService_DoGetServer) (total endMark, err error) {
	r, err := s.source.Fetch(stream.Context(), t)
	if err != nil {
		return total, err
	}
	defer func() {
		if cerr := r.Close(); err == nil {
			err = cerr
		}
	}()
	e := newEncoder(stream)
	for {
		// A source in memory does not look at the context.
		if err := context.Cause(stream.Context()); err != nil {
			return e.total, err
		}
		cs, err := r.Next()
		if errors.Is(err, io.EOF) {
			return e.total, e.end()
		}
		if err != nil {
			return e.total, err
		}
		if err := e.add(cs); err != nil {
			return e.total, err
		}
	}
}
