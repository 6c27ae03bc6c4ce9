package replication

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/internal/certtest"
	"github.com/tidemark-cdc/tidemark/internal/pgtest"
)

// open makes both kinds of connection that a pipeline makes, and says which
// user the server took the replication connection for and whether it is
// encrypted.
func (s *secured) open(t *testing.T, cfg Config) (who string, err error) {
	t.Helper()
	cfg.Slot, cfg.Publications = "s", []string{"p"}
	admin, err := NewAdmin(cfg, discard())
	if err != nil {
		return "", err
	}
	if _, err := admin.Look(t.Context()); err != nil {
		return "", fmt.Errorf("ordinary: %w", err)
	}
	session, err := Open(t.Context(), cfg, discard())
	if err != nil {
		return "", fmt.Errorf("replication: %w", err)
	}
	defer session.Close(context.Background())
	var user string
	var encrypted bool
	err = s.conn.QueryRow(t.Context(), "SELECT usename, ssl FROM pg_stat_activity JOIN pg_stat_ssl USING (pid) WHERE pid = $1", session.PID()).Scan(&user, &encrypted)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s, encrypted %v", user, encrypted), nil
}

// secured is a server that lets nobody in without TLS but a superuser that looks
// on: the role cert with a client certificate of that name, the role pw with a
// password.
type secured struct {
	srv  *pgtest.Server
	conn *pgx.Conn
}

func newSecured(t *testing.T, version int, ca *certtest.Authority) *secured {
	t.Helper()
	cert, key := ca.Issue(t, "server", "127.0.0.1")
	srv := pgtest.New(t, pgtest.Options{
		Version:  version,
		Settings: map[string]string{"ssl": "on", "ssl_cert_file": "server.crt", "ssl_key_file": "server.key", "ssl_ca_file": "ca.crt"},
		Files: map[string]string{
			"server.crt": text(t, cert), "server.key": text(t, key), "ca.crt": text(t, ca.File),
			"pg_hba.conf": `
hostnossl all         postgres 127.0.0.1/32 trust
hostssl   all         cert     127.0.0.1/32 cert
hostssl   replication cert     127.0.0.1/32 cert
hostssl   all         pw       127.0.0.1/32 scram-sha-256
hostssl   replication pw       127.0.0.1/32 scram-sha-256
`,
		},
	})
	s := &secured{srv: srv, conn: connect(t, srv.URL())}
	execute(t, s.conn, "CREATE ROLE cert LOGIN REPLICATION", "CREATE ROLE pw LOGIN REPLICATION PASSWORD 'f1rst-s3cret'")
	return s
}

func (s *secured) url(role string, settings map[string]string) string {
	q := url.Values{}
	for k, v := range settings {
		q.Set(k, v)
	}
	u := url.URL{Scheme: "postgres", Host: fmt.Sprintf("127.0.0.1:%d", s.srv.Port()), Path: "/postgres", User: url.User(role), RawQuery: q.Encode()}
	return u.String()
}

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestServerAndClientShowCertificates(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(fmt.Sprintf("postgres%d", version), func(t *testing.T) {
			t.Parallel()
			ca, foreign := certtest.New(t), certtest.New(t)
			s := newSecured(t, version, ca)
			cert, key := ca.Issue(t, "cert")
			other, otherKey := ca.Issue(t, "somebody")
			alien, alienKey := foreign.Issue(t, "cert")
			for name, c := range map[string]struct {
				settings  map[string]string
				want      string // who it is, or what the error says
				transient bool
			}{
				"all of it":                    {map[string]string{"sslmode": "verify-full", "sslrootcert": ca.File, "sslcert": cert, "sslkey": key}, "cert, encrypted true", false},
				"no client certificate":        {map[string]string{"sslmode": "verify-full", "sslrootcert": ca.File}, "certificate", true},
				"somebody else's":              {map[string]string{"sslmode": "verify-full", "sslrootcert": ca.File, "sslcert": other, "sslkey": otherKey}, "certificate authentication failed", true},
				"of another authority":         {map[string]string{"sslmode": "verify-full", "sslrootcert": ca.File, "sslcert": alien, "sslkey": alienKey}, "", true},
				"another server is expected":   {map[string]string{"sslmode": "verify-full", "sslrootcert": foreign.File, "sslcert": cert, "sslkey": key}, "signed by unknown authority", false},
				"the system's authorities":     {map[string]string{"sslmode": "verify-full", "sslcert": cert, "sslkey": key}, "signed by unknown authority", false},
				"without TLS":                  {map[string]string{"sslmode": "disable"}, "no encryption", true},
				"a file that is not there":     {map[string]string{"sslmode": "verify-full", "sslrootcert": "/nowhere/ca.pem"}, "/nowhere/ca.pem", false},
				"a key of another certificate": {map[string]string{"sslmode": "verify-full", "sslrootcert": ca.File, "sslcert": cert, "sslkey": otherKey}, "private key does not match", false},
			} {
				got, err := s.open(t, Config{ConnString: s.url("cert", c.settings)})
				if err != nil {
					got = err.Error()
				}
				if !strings.Contains(got, c.want) || (err == nil) != (name == "all of it") {
					t.Errorf("%s: %s, want %q", name, got, c.want)
				}
				if err != nil && Transient(err) != c.transient {
					t.Errorf("%s: transient is %v for %v", name, Transient(err), err)
				}
			}
			// Under another name the server has no certificate.
			u := strings.Replace(s.url("cert", map[string]string{"sslmode": "verify-full", "sslrootcert": ca.File, "sslcert": cert, "sslkey": key}), "127.0.0.1", "localhost", 1)
			if _, err := s.open(t, Config{ConnString: u}); err == nil || !strings.Contains(err.Error(), "x509") || Transient(err) {
				t.Errorf("another name: transient is %v for %v", Transient(err), err)
			}
		})
	}
}

// The files are read and the password is fetched for each connection: so all of
// it is replaced without a restart.
func TestCertificateAndPasswordAreReplacedWithoutARestart(t *testing.T) {
	t.Parallel()
	ca, foreign := certtest.New(t), certtest.New(t)
	s := newSecured(t, 15, ca)
	cert, key := foreign.Issue(t, "cert")
	cfg := Config{ConnString: s.url("cert", map[string]string{"sslmode": "verify-full", "sslrootcert": ca.File, "sslcert": cert, "sslkey": key})}
	if _, err := s.open(t, cfg); err == nil {
		t.Error("a foreign certificate was taken")
	}
	newCert, newKey := ca.Issue(t, "cert")
	for from, to := range map[string]string{newCert: cert, newKey: key} {
		if err := os.WriteFile(to, []byte(text(t, from)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if who, err := s.open(t, cfg); err != nil || who != "cert, encrypted true" {
		t.Errorf("after the files were replaced: %s, %v", who, err)
	}

	password, fetched := "f1rst-s3cret", 0
	cfg = Config{
		ConnString: s.url("pw", map[string]string{"sslmode": "verify-full", "sslrootcert": ca.File}),
		Password:   func(context.Context) (string, error) { fetched++; return password, nil },
	}
	for _, step := range []struct {
		ours, theirs string
		ok           bool
	}{
		{"f1rst-s3cret", "f1rst-s3cret", true},
		{"f1rst-s3cret", "s3cond-s3cret", false},
		{"s3cond-s3cret", "s3cond-s3cret", true},
	} {
		execute(t, s.conn, "ALTER ROLE pw PASSWORD '"+step.theirs+"'")
		password, fetched = step.ours, 0
		who, err := s.open(t, cfg)
		if step.ok {
			// One for the ordinary connection and one for the stream.
			if err != nil || who != "pw, encrypted true" || fetched != 2 {
				t.Errorf("%+v: %s, %v, fetched %d times", step, who, err, fetched)
			}
			continue
		}
		_, streamErr := Open(t.Context(), Config{ConnString: cfg.ConnString, Password: cfg.Password, Slot: "s"}, discard())
		if !errors.Is(streamErr, ErrDenied) {
			t.Errorf("%+v: %v", step, streamErr)
		}
		for _, err := range []error{err, streamErr} {
			if err == nil || !Transient(err) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%+v: transient is %v for %v", step, Transient(err), err)
			}
		}
	}
	cfg.Password = func(context.Context) (string, error) { return "", errors.New("no answer from the vault") }
	if _, err := s.open(t, cfg); err == nil || !Transient(err) || !strings.Contains(err.Error(), "fetch the password: no answer from the vault") {
		t.Errorf("transient is %v for %v", Transient(err), err)
	}
}
