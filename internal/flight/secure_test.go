package flight

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tidemark-cdc/tidemark/internal/certtest"
	"github.com/tidemark-cdc/tidemark/internal/segment/segmenttest"
)

func TestOnlyWorkersWithCertificateAndTokenAreServed(t *testing.T) {
	ca, foreign := certtest.New(t), certtest.New(t)
	cert, key := ca.Issue(t, "streamer", "127.0.0.1")
	wcert, wkey := ca.Issue(t, "worker")
	fcert, fkey := foreign.Issue(t, "worker")
	token, wrong := file(t, "token", "s3cret\n"), file(t, "wrong", "s3cre\n")
	seg := example(100)
	s, _ := serve(t, ServerConfig{CertFile: cert, KeyFile: key, ClientCAFile: ca.File, TokenFile: token}, segmenttest.NewMemory(seg))
	full := ClientConfig{CAFile: ca.File, CertFile: wcert, KeyFile: wkey, TokenFile: token}
	for name, c := range map[string]struct {
		change func(*ClientConfig)
		want   error
	}{
		"all of it":                     {func(*ClientConfig) {}, nil},
		"no token":                      {func(c *ClientConfig) { c.TokenFile = "" }, ErrDenied},
		"another token":                 {func(c *ClientConfig) { c.TokenFile = wrong }, ErrDenied},
		"no client certificate":         {func(c *ClientConfig) { c.CertFile, c.KeyFile = "", "" }, ErrUnreachable},
		"a foreign client certificate":  {func(c *ClientConfig) { c.CertFile, c.KeyFile = fcert, fkey }, ErrUnreachable},
		"another authority trusted":     {func(c *ClientConfig) { c.CAFile = foreign.File }, ErrUnreachable},
		"another name expected":         {func(c *ClientConfig) { c.ServerName = "elsewhere" }, ErrUnreachable},
		"no TLS at all":                 {func(c *ClientConfig) { *c = ClientConfig{TokenFile: token} }, ErrUnreachable},
		"insecure changes nothing here": {func(c *ClientConfig) { c.Insecure = true }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := full
			c.change(&cfg)
			_, err := segmenttest.ReadAll(t.Context(), t, connect(t, cfg, s.Address()), seg.Ref.Ticket())
			if !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "s3cre") {
				t.Errorf("error %v tells the token", err)
			}
		})
	}
}

func TestTokenIsNeverSentInTheClearOverTheNetwork(t *testing.T) {
	token := file(t, "token", "s3cret")
	var mu sync.Mutex
	var seen []string
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tap := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		md, _ := metadata.FromIncomingContext(s.Context())
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, md.Get(tokenHeader)...)
		return errors.New("this is a tap")
	}))
	served := make(chan error, 1)
	go func() { served <- tap.Serve(lis) }()
	t.Cleanup(func() { tap.Stop(); <-served })

	_, port, _ := net.SplitHostPort(lis.Addr().String())
	for _, c := range []struct {
		host     string
		insecure bool
		sent     bool
	}{
		{"127.0.0.1", false, true},
		{"localhost", false, true},
		// It resolves like the other, and is any name to the client.
		{"LOCALHOST", false, false},
		{"LOCALHOST", true, true},
	} {
		seen = nil
		_, err := connect(t, ClientConfig{TokenFile: token, Insecure: c.insecure}, c.host+":"+port).Fetch(t.Context(), example(1).Ref.Ticket())
		if err == nil {
			t.Fatal("no error")
		}
		mu.Lock()
		if got := len(seen) > 0; got != c.sent {
			t.Errorf("host %s, insecure %v: token %q came (%v)", c.host, c.insecure, seen, err)
		}
		mu.Unlock()
	}
}

func TestTokensAreNotLogged(t *testing.T) {
	var mu sync.Mutex
	var out bytes.Buffer
	log := slog.New(slog.NewJSONHandler(lockedWriter{&mu, &out}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	good, bad := file(t, "good", "g00d-t0ken"), file(t, "bad", "b4d-t0ken")
	s, err := NewServer(ServerConfig{TokenFile: good}, segmenttest.NewMemory(), log)
	if err != nil {
		t.Fatal(err)
	}
	run(t, s)
	for _, f := range []string{good, bad} {
		_, _ = connect(t, ClientConfig{TokenFile: f}, s.Address()).Fetch(t.Context(), example(1).Ref.Ticket())
	}
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(out.String(), "wrong token") {
		t.Errorf("the log does not tell of a wrong token: %s", &out)
	}
	if strings.Contains(out.String(), "t0ken") {
		t.Errorf("the log tells a token: %s", &out)
	}
}

func TestTokenIsReplacedWithoutARestart(t *testing.T) {
	seg := example(10)
	streamers, workers := file(t, "streamers", "old"), file(t, "workers", "old")
	s, _ := serve(t, ServerConfig{TokenFile: streamers}, segmenttest.NewMemory(seg))
	src := connect(t, ClientConfig{TokenFile: workers}, s.Address())
	fetch := func() error {
		_, err := segmenttest.ReadAll(t.Context(), t, src, seg.Ref.Ticket())
		return err
	}
	for i, step := range []struct {
		file, text string
		want       error
	}{
		{workers, "old", nil},
		{streamers, "old\nnew\n", nil},
		{workers, "new\nold\n", nil},
		{streamers, "new\n", nil},
		{streamers, "newer\n", ErrDenied},
		{workers, "newer\n", nil},
		// A file that is just being replaced changes nothing.
		{streamers, "", nil},
	} {
		write(t, step.file, step.text)
		if err := fetch(); !errors.Is(err, step.want) {
			t.Errorf("step %d: %v, want %v", i, err, step.want)
		}
	}
}

func TestTokenAsksForTLSUnlessThePlainWireWasAllowed(t *testing.T) {
	if !(sendToken{}).RequireTransportSecurity() || (sendToken{plain: true}).RequireTransportSecurity() {
		t.Error("gRPC would send the token in the clear")
	}
}

func TestCertificateIsReplacedWithoutARestart(t *testing.T) {
	seg := example(10)
	old, next := certtest.New(t), certtest.New(t)
	cert, key := old.Issue(t, "streamer", "127.0.0.1")
	cert2, key2 := next.Issue(t, "streamer", "127.0.0.1")
	s, _ := serve(t, ServerConfig{CertFile: cert, KeyFile: key}, segmenttest.NewMemory(seg))
	fetch := func(ca string) error {
		_, err := segmenttest.ReadAll(t.Context(), t, connect(t, ClientConfig{CAFile: ca}, s.Address()), seg.Ref.Ticket())
		return err
	}
	if err := fetch(old.File); err != nil {
		t.Fatal(err)
	}
	write(t, cert, read(t, cert2))
	if err := fetch(old.File); err != nil {
		t.Errorf("with the new certificate and still the old key: %v", err)
	}
	write(t, key, read(t, key2))
	if err := fetch(next.File); err != nil {
		t.Errorf("with the new certificate: %v", err)
	}
	if err := fetch(old.File); !errors.Is(err, ErrUnreachable) {
		t.Errorf("with the old authority: %v", err)
	}
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	write(t, path, text)
	return path
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

type lockedWriter struct {
	mu *sync.Mutex
	w  *bytes.Buffer
}

func (l lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
