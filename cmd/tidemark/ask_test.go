package main

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemark-cdc/tidemark/internal/bearer"
	"github.com/tidemark-cdc/tidemark/internal/config"
	"github.com/tidemark-cdc/tidemark/internal/ops"
)

// serveOps serves a real page with the tokens of a file (may be empty: none is
// asked for) and gives its host:port.
func serveOps(t *testing.T, tokenFile string, reasons ...string) string {
	t.Helper()
	p := ops.Page{Ready: func() []string { return reasons }, Status: func() any { return pageStatus{Pipeline: "shop"} },
		Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)}
	if tokenFile != "" {
		var err error
		if p.Tokens, err = bearer.Follow("ops.token_file", tokenFile, p.Logger); err != nil {
			t.Fatal(err)
		}
	}
	srv := httptest.NewServer(p.Handler())
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://")
}

func secretFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestHealthIsAStatus(t *testing.T) {
	right, wrong := secretFile(t, "r1ght\n"), secretFile(t, "wr0ng\n")
	for name, tc := range map[string]struct {
		addr string
		args []string
		want int
		out  string
		err  string
	}{
		"alive":                          {serveOps(t, "", "Temporal cannot be reached"), nil, statusDone, "alive\n", ""},
		"alive, whatever the token":      {serveOps(t, right), []string{"--ops-token-file", wrong}, statusDone, "alive\n", ""},
		"ready":                          {serveOps(t, ""), []string{"--ready"}, statusDone, "ready\n", ""},
		"not ready":                      {serveOps(t, "", "Temporal cannot be reached"), []string{"--ready"}, statusFailed, "Temporal cannot be reached\n", ""},
		"not ready, with the token":      {serveOps(t, right, "no Temporal"), []string{"--ready", "--ops-token-file", right}, statusFailed, "no Temporal\n", ""},
		"not ready, without a token":     {serveOps(t, right, "no Temporal"), []string{"--ready"}, statusFailed, "not ready; it says why to who shows a token of its ops.token_file\n", ""},
		"ready, with a wrong token":      {serveOps(t, right), []string{"--ready", "--ops-token-file", wrong}, statusFailed, "", "wants another token: set ops.token_file"},
		"with a token file that is none": {serveOps(t, right), []string{"--ready", "--ops-token-file", right + "x"}, statusFailed, "", "no such file"},
		"alive, as JSON":                 {serveOps(t, ""), []string{"--json"}, statusDone, "{\n  \"alive\": true\n}\n", ""},
		"ready, as JSON":                 {serveOps(t, ""), []string{"--ready", "--json"}, statusDone, "{\n  \"ready\": true,\n  \"reasons\": []\n}\n", ""},
		"not ready, as JSON":             {serveOps(t, "", "no <Temporal>"), []string{"--ready", "--json"}, statusFailed, "{\n  \"ready\": false,\n  \"reasons\": [\n    \"no <Temporal>\"\n  ]\n}\n", ""},
		"nobody there, as JSON":          {"127.0.0.1:1", []string{"--json"}, statusFailed, "", "no process answers at 127.0.0.1:1"},
		"nobody there":                   {"127.0.0.1:1", []string{"--ready"}, statusFailed, "", "no process answers at 127.0.0.1:1"},
		"off":                            {"off", nil, statusFailed, "", "ops.listen is off"},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, nil, append([]string{"health", "--ops-listen", tc.addr}, tc.args...)...)
			if got.status != tc.want || got.out != tc.out || (got.err == "") != (tc.err == "") {
				t.Errorf("got %+v", got)
			}
			has(t, "stderr", got.err, tc.err)
			if strings.Contains(got.err+got.out, "r1ght") || strings.Contains(got.err+got.out, "wr0ng") {
				t.Errorf("a token is shown: %+v", got)
			}
		})
	}
}

func TestTheTokenIsNotCarriedElsewhere(t *testing.T) {
	var seen []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
	}))
	t.Cleanup(elsewhere.Close)
	srv := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusFound))
	t.Cleanup(srv.Close)
	got := run(t, nil, "health", "--ops-listen", strings.TrimPrefix(srv.URL, "http://"), "--ops-token-file", secretFile(t, "r1ght"))
	if got.status != statusFailed || len(seen) > 0 {
		t.Errorf("status %d, the other place has seen %q", got.status, seen)
	}
}

func TestAnAddressOfEveryInterfaceIsAskedOnThisMachine(t *testing.T) {
	for listen, want := range map[string]string{
		"": defaultStreamerPage, "0.0.0.0:9": "localhost:9", "[::]:9": "localhost:9", ":9": "localhost:9", "127.0.0.1:9": "127.0.0.1:9", "box:9": "box:9",
	} {
		if got := askedPage(&config.Config{Ops: config.Ops{Listen: listen}}); got != want {
			t.Errorf("%q is asked at %s, want %s", listen, got, want)
		}
	}
}
