package ops

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemark-cdc/tidemark/internal/bearer"
)

// guarded is a page that wants one of the file's tokens, and what it logs.
func guarded(t *testing.T, file string) (http.Handler, *bytes.Buffer) {
	t.Helper()
	return guardedPage(t, Page{
		Ready: func() []string { return []string{"a reason"} }, Status: func() any { return "a status" },
		Metrics: prometheus.NewRegistry(), Level: new(slog.LevelVar), Profiles: true,
	}, file)
}

func guardedPage(t *testing.T, p Page, file string) (http.Handler, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	p.Logger = slog.New(slog.NewTextHandler(&log, nil))
	var err error
	if p.Tokens, err = bearer.Follow("ops.token_file", file, p.Logger); err != nil {
		t.Fatal(err)
	}
	return p.Handler(), &log
}

func tokenFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEveryPathButHealthAsksForTheToken(t *testing.T) {
	h, log := guarded(t, tokenFile(t, "first-s3cret\nsecond-s3cret\n"))
	show := map[string]func(*http.Request){
		"first":     func(r *http.Request) { r.Header.Set("Authorization", "Bearer first-s3cret") },
		"second":    func(r *http.Request) { r.Header.Set("Authorization", "bearer second-s3cret") },
		"a browser": func(r *http.Request) { r.SetBasicAuth("anyone", "first-s3cret") },
	}
	refuse := map[string]func(*http.Request){
		"nothing":             func(*http.Request) {},
		"another":             func(r *http.Request) { r.Header.Set("Authorization", "Bearer third-s3cret") },
		"the beginning of it": func(r *http.Request) { r.Header.Set("Authorization", "Bearer first-s3cre") },
		"an empty one":        func(r *http.Request) { r.Header.Set("Authorization", "Bearer ") },
		"both":                func(r *http.Request) { r.Header.Set("Authorization", "Bearer first-s3cret second-s3cret") },
		"as a user's name":    func(r *http.Request) { r.SetBasicAuth("first-s3cret", "") },
		"in the address":      func(r *http.Request) { r.URL.RawQuery = "token=first-s3cret" },
	}
	ask := func(method, path string, prepare func(*http.Request)) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader("info"))
		prepare(r)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for _, p := range []struct{ method, path string }{
		{"GET", "/status"}, {"GET", "/metrics"}, {"GET", "/log-level"}, {"PUT", "/log-level"}, {"GET", "/debug/pprof/"}, {"GET", "/debug/pprof/cmdline"},
	} {
		for name, f := range show {
			if w := ask(p.method, p.path, f); w.Code != http.StatusOK {
				t.Errorf("%s %s with %s: %d %s", p.method, p.path, name, w.Code, w.Body)
			}
		}
		for name, f := range refuse {
			w := ask(p.method, p.path, f)
			if w.Code != http.StatusUnauthorized || len(w.Header().Values("WWW-Authenticate")) != 2 || strings.Contains(w.Body.String(), "s3cre") {
				t.Errorf("%s %s with %s: %d %s", p.method, p.path, name, w.Code, w.Body)
			}
		}
	}
	if w := ask("GET", "/healthz", refuse["another"]); w.Code != http.StatusOK {
		t.Errorf("health: %d", w.Code)
	}
	// A probe without a token learns whether, and not why.
	if w := ask("GET", "/readyz", refuse["nothing"]); w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "a reason") {
		t.Errorf("ready without a token: %d %s", w.Code, w.Body)
	}
	if w := ask("GET", "/readyz", show["first"]); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "a reason") {
		t.Errorf("ready with a token: %d %s", w.Code, w.Body)
	}
	if w := ask("GET", "/readyz", refuse["another"]); w.Code != http.StatusUnauthorized {
		t.Errorf("ready with a wrong token: %d %s", w.Code, w.Body)
	}
	if !strings.Contains(log.String(), "wrong token") || strings.Contains(log.String(), "s3cre") {
		t.Errorf("the log: %s", log)
	}
}

func TestTheTokenIsReplacedWithoutARestart(t *testing.T) {
	file := tokenFile(t, "old")
	h, _ := guarded(t, file)
	for _, step := range []struct {
		text, token string
		want        int
	}{
		{"old", "old", 200}, {"new\nold\n", "old", 200}, {"new\nold\n", "new", 200}, {"new\n", "old", 401}, {"new\n", "new", 200},
		// A file that is just being replaced changes nothing.
		{"", "new", 200},
	} {
		if err := os.WriteFile(file, []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/status", nil)
		r.Header.Set("Authorization", "Bearer "+step.token)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != step.want {
			t.Errorf("file %q, token %q: %d, want %d", step.text, step.token, w.Code, step.want)
		}
	}
}

func TestTheLevelOfTheLogIsSetWhileTheProcessRuns(t *testing.T) {
	var log bytes.Buffer
	level := new(slog.LevelVar)
	p := Page{Metrics: prometheus.NewRegistry(), Level: level, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level}))}
	h := p.Handler()
	for _, step := range []struct {
		method, body string
		status       int
		want         slog.Level
	}{
		{"GET", "", 200, slog.LevelInfo},
		{"PUT", "debug\n", 200, slog.LevelDebug},
		{"PUT", "loud", 400, slog.LevelDebug},
		{"PUT", "debug+2", 400, slog.LevelDebug},
		{"PUT", "error", 200, slog.LevelError},
		{"PUT", "warn", 200, slog.LevelWarn},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), step.method, "/log-level", strings.NewReader(step.body)))
		if w.Code != step.status || level.Level() != step.want {
			t.Errorf("%s %q: %d %s, level %s", step.method, step.body, w.Code, w.Body, level.Level())
		}
		if w.Code == 200 && strings.TrimSpace(w.Body.String()) != strings.ToLower(step.want.String()) {
			t.Errorf("%s %q answers %q", step.method, step.body, w.Body)
		}
	}
	// Each change is told, also those to and between levels that hide much.
	if n := strings.Count(log.String(), "the level of the log is changed"); n != 3 {
		t.Errorf("%d changes are told:\n%s", n, &log)
	}
}

func TestProfilesAreServedOnlyWhenAskedFor(t *testing.T) {
	for _, on := range []bool{false, true} {
		p := Page{Metrics: prometheus.NewRegistry(), Profiles: on, Logger: slog.New(slog.DiscardHandler)}
		w := httptest.NewRecorder()
		p.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/debug/pprof/goroutine?debug=1", nil))
		if got := w.Code == http.StatusOK; got != on {
			t.Errorf("asked for: %v, status %d", on, w.Code)
		}
	}
}
