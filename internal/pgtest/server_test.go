package pgtest

import (
	"context"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestServerLivesAndDies(t *testing.T) {
	s := New(t, Options{Settings: map[string]string{"wal_sender_timeout": "7s"}})
	pid := s.PID()
	dial := func() error {
		c, err := net.DialTimeout("tcp", "127.0.0.1:"+strconv.Itoa(s.Port()), time.Minute)
		if err == nil {
			c.Close()
		}
		return err
	}
	if pid == 0 || dial() != nil {
		t.Fatalf("pid %d, dial: %v", pid, dial())
	}
	for name, stop := range map[string]func() error{
		"fast":      func() error { return s.Stop(Fast) },
		"immediate": func() error { return s.Stop(Immediate) },
		"kill":      s.Kill,
	} {
		if err := stop(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if s.PID() != 0 || dial() == nil {
			t.Fatalf("%s: the server is still there", name)
		}
		if err := s.Resume(t.Context()); err != nil {
			t.Fatalf("%s: start again: %v", name, err)
		}
		if s.PID() == pid || dial() != nil {
			t.Fatalf("%s: the server is not back", name)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.Data()); !os.IsNotExist(err) {
		t.Fatalf("the temporary folder is still there: %v", err)
	}
}

func TestStartSaysWhyItFailed(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	_, err := Start(ctx, Options{Settings: map[string]string{"wal_level": "nonsense"}})
	if err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Fatalf("got %v", err)
	}
	_, err = Start(ctx, Options{Version: 3})
	if err == nil || !strings.Contains(err.Error(), "TIDEMARK_POSTGRES3") {
		t.Fatalf("got %v", err)
	}
}

func TestURLHoldsRolePasswordAndDatabase(t *testing.T) {
	s := &Server{port: 5432}
	if got, want := s.URLFor("a b", "p@ss", "d"), "postgres://a%20b:p%40ss@127.0.0.1:5432/d?sslmode=disable"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
}
