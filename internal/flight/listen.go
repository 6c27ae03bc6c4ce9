package flight

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// ServerConfig says where the streamer offers its segments, and to whom.
type ServerConfig struct {
	// Listen is the host:port to bind to. Default: 127.0.0.1:0, a free port on
	// this machine only. An address of the network needs CertFile, KeyFile and
	// TokenFile, or Insecure.
	Listen string
	// Advertise is the host, or host:port, that workers are told to connect to.
	// Default: the address that was bound, or, if that is "any", the host's
	// name. Without a port, or with port 0, the bound one is taken.
	Advertise string

	// CertFile and KeyFile are PEM files: the certificate (chain) and its key.
	// Both or neither.
	CertFile, KeyFile string
	// ClientCAFile is a PEM file of authorities. If set, workers must show a
	// certificate that one of them has signed.
	ClientCAFile string
	// TokenFile holds the token that workers must send; see bearer.Tokens for
	// several. Empty: none is asked for.
	TokenFile string
	// Insecure allows an address of the network without TLS or a token.
	Insecure bool

	// Grace is how long running fetches may take when the server is stopped.
	// Default: 10 s.
	Grace time.Duration

	// alive and answer are defaultAlive and defaultAnswer, but in tests.
	alive, answer time.Duration
}

const (
	defaultListen = "127.0.0.1:0"
	defaultGrace  = 10 * time.Second
)

func (c ServerConfig) withDefaults() ServerConfig {
	if c.Listen == "" {
		c.Listen = defaultListen
	}
	if c.Grace == 0 {
		c.Grace = defaultGrace
	}
	if c.alive == 0 {
		c.alive, c.answer = defaultAlive, defaultAnswer
	}
	return c
}

func (c ServerConfig) validate() error {
	switch {
	case (c.CertFile == "") != (c.KeyFile == ""):
		return errors.New("data.tls_cert and data.tls_key go together: set both or neither")
	case c.ClientCAFile != "" && c.CertFile == "":
		return errors.New("data.tls_client_ca is set without data.tls_cert and data.tls_key: a client certificate needs TLS")
	case c.Grace < 0:
		return fmt.Errorf("the grace period is %s: it must not be negative", c.Grace)
	}
	return nil
}

// listen binds to the configured address if that is allowed.
func (c ServerConfig) listen() (*net.TCPListener, error) {
	// Resolved once, so that what is checked is what is bound.
	addr, err := net.ResolveTCPAddr("tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("data.listen %q is not a host:port of this machine: %w", c.Listen, err)
	}
	secure := c.CertFile != "" && c.TokenFile != ""
	if !addr.IP.IsLoopback() && !secure && !c.Insecure {
		return nil, fmt.Errorf("data.listen %s is open to the network, where the rows of your database would be readable: set data.tls_cert, data.tls_key and data.token_file, or set data.insecure to true if this network is as trusted as the machine itself", c.Listen)
	}
	l, err := net.ListenTCP("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("bind to data.listen %s: %w", c.Listen, err)
	}
	return l, nil
}

// advertise gives the host:port to tell workers, with bound as what was bound.
func (c ServerConfig) advertise(bound *net.TCPAddr) (string, error) {
	port := strconv.Itoa(bound.Port)
	if c.Advertise == "" {
		if !bound.IP.IsUnspecified() {
			return bound.String(), nil
		}
		host, err := os.Hostname()
		if err != nil {
			return "", fmt.Errorf("data.listen %s names no host that workers could connect to, and this host's name is not known (%w): set data.advertise", c.Listen, err)
		}
		return net.JoinHostPort(host, port), nil
	}
	host, p, err := net.SplitHostPort(c.Advertise)
	if err != nil {
		// A bare host, perhaps an IPv6 address.
		host, p = c.Advertise, "0"
		if h, _, err := net.SplitHostPort(host + ":0"); err == nil {
			host = h
		} else if net.ParseIP(host) == nil {
			return "", fmt.Errorf("data.advertise %q is neither host nor host:port", c.Advertise)
		}
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return "", fmt.Errorf("data.advertise %q names no host that workers could connect to", c.Advertise)
	}
	n, err := strconv.ParseUint(p, 10, 16)
	if err != nil {
		return "", fmt.Errorf("data.advertise %q has no port between 0 and 65535", c.Advertise)
	}
	if n != 0 {
		port = p
	}
	return net.JoinHostPort(host, port), nil
}
