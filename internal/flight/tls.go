package flight

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"google.golang.org/grpc/credentials"

	"github.com/tidemark-cdc/tidemark/internal/reload"
)

// rotating are TLS credentials whose files are looked at for each handshake.
type rotating struct {
	configs *reload.Value[*tls.Config]
}

// newServerTLS follows a certificate, its key, and the authorities of client
// certificates (may be empty: none is asked for).
func newServerTLS(cert, key, clientCA string, log *slog.Logger) (credentials.TransportCredentials, error) {
	r, err := reload.New("the TLS files of the data plane (data.tls_cert, data.tls_key, data.tls_client_ca)",
		[]string{cert, key, clientCA}, log, func(files [][]byte) (*tls.Config, error) {
			pair, err := tls.X509KeyPair(files[0], files[1])
			if err != nil {
				return nil, fmt.Errorf("certificate %s with key %s: %w", cert, key, err)
			}
			c := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}}
			if clientCA != "" {
				if c.ClientCAs, err = authorities(clientCA, files[2]); err != nil {
					return nil, err
				}
				c.ClientAuth = tls.RequireAndVerifyClientCert
			}
			return c, nil
		})
	if err != nil {
		return nil, err
	}
	return rotating{r}, nil
}

// newClientTLS follows the authorities of the streamer's certificate (may be
// empty: the system's) and a client certificate with its key (may be empty).
func newClientTLS(ca, cert, key string, log *slog.Logger) (credentials.TransportCredentials, error) {
	r, err := reload.New("the TLS files of the data plane (data.tls_ca, data.tls_cert, data.tls_key)",
		[]string{ca, cert, key}, log, func(files [][]byte) (*tls.Config, error) {
			c := &tls.Config{MinVersion: tls.VersionTLS13}
			var err error
			if ca != "" {
				if c.RootCAs, err = authorities(ca, files[0]); err != nil {
					return nil, err
				}
			}
			if cert != "" {
				pair, err := tls.X509KeyPair(files[1], files[2])
				if err != nil {
					return nil, fmt.Errorf("certificate %s with key %s: %w", cert, key, err)
				}
				c.Certificates = []tls.Certificate{pair}
			}
			return c, nil
		})
	if err != nil {
		return nil, err
	}
	return rotating{r}, nil
}

func authorities(path string, pem []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no PEM certificate", path)
	}
	return pool, nil
}

func (r rotating) now() (credentials.TransportCredentials, error) {
	c, err := r.configs.Get()
	if err != nil {
		return nil, err
	}
	return credentials.NewTLS(c), nil
}

// ClientHandshake implements credentials.TransportCredentials.
func (r rotating) ClientHandshake(ctx context.Context, authority string, c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	t, err := r.now()
	if err != nil {
		return nil, nil, err
	}
	return t.ClientHandshake(ctx, authority, c)
}

// ServerHandshake implements credentials.TransportCredentials.
func (r rotating) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	t, err := r.now()
	if err != nil {
		return nil, nil, err
	}
	return t.ServerHandshake(c)
}

// Info implements credentials.TransportCredentials. It names no server: the name
// to expect is that of the connection (grpc.WithAuthority).
func (r rotating) Info() credentials.ProtocolInfo {
	return credentials.NewTLS(nil).Info()
}

// Clone implements credentials.TransportCredentials.
func (r rotating) Clone() credentials.TransportCredentials { return r }

// OverrideServerName implements credentials.TransportCredentials. gRPC itself
// does not call it.
func (r rotating) OverrideServerName(string) error {
	return errors.New("the name of the server is that of the connection")
}
