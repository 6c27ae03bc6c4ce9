package ops

import (
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestTheStatusPageRunsUnderAPolicyThatNamesItsOwnStyleAndScript(t *testing.T) {
	h := Page{Live: live("shop", new(atomic.Int64)), Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)}.Handler()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
	body, policy := w.Body.String(), w.Header().Get("Content-Security-Policy")
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
		t.Fatalf("/ answers with %d, %v", w.Code, w.Header())
	}
	for _, element := range []string{"style", "script"} {
		found := regexp.MustCompile(`(?s)<`+element+`>(.*?)</`+element+`>`).FindAllStringSubmatch(body, -1)
		if len(found) != 1 {
			t.Fatalf("the page has %d elements %s, want one", len(found), element)
		}
		sum := sha256.Sum256([]byte(found[0][1]))
		if want := element + "-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(policy, want+";") {
			t.Errorf("the policy has no %s: %s", want, policy)
		}
	}
	for _, want := range []string{"default-src 'none'", "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy has no %s: %s", want, policy)
		}
	}
	for _, refused := range []string{"unsafe", "*", "http:", "https:"} {
		if strings.Contains(policy, refused) {
			t.Errorf("the policy has %s: %s", refused, policy)
		}
	}
	for header, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"} {
		if got := w.Header().Get(header); got != want {
			t.Errorf("%s is %q", header, got)
		}
	}
}

func TestTheStatusPageTakesNothingFromElsewhereAndNoTextForMarkup(t *testing.T) {
	for what, pattern := range map[string]string{
		"a resource":                    `(?i)\ssrc\s*=|@import|<link[^>]*stylesheet|<(img|iframe|object|embed|base)\b`,
		"an address of another host":    `(?i)(href|action)\s*=\s*["']?(https?:)?//|url\(\s*["']?https?:`,
		"a style within the markup":     `(?i)<[^>]*\sstyle\s*=`,
		"a handler within the markup":   `(?i)<[^>]*\son[a-z]+\s*=`,
		"a way from text to markup":     `innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b|new Function|createContextualFragment|srcdoc`,
		"a token that would go into it": `(?i)events\?`,
	} {
		if found := regexp.MustCompile(pattern).FindString(statusPage); found != "" {
			t.Errorf("the page has %s: %q", what, found)
		}
	}
}

func TestThePageNeedsNoTokenAndItsEventsDo(t *testing.T) {
	p := Page{Live: live("s3cret-pipeline", new(atomic.Int64)), Metrics: prometheus.NewRegistry()}
	h, _ := guardedPage(t, p, tokenFile(t, "first-s3cret\n"))
	srv := httptest.NewServer(h)
	defer srv.Close()
	if status, body := get(t, srv.URL+"/"); status != http.StatusOK || strings.Contains(body, "s3cret") {
		t.Errorf("/ without a token: %d, %d bytes", status, len(body))
	}
	if status, body := get(t, srv.URL+"/events"); status != http.StatusUnauthorized || strings.Contains(body, "s3cret") {
		t.Errorf("/events without a token: %d %s", status, body)
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer first-s3cret")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("/events with a token: %s", resp.Status)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestAWorkerSaysWhatThereIsInsteadOfAStatusPage(t *testing.T) {
	url := start(t, Page{})
	if status, body := get(t, url+"/"); status != http.StatusOK || !strings.Contains(body, "/readyz") || !strings.Contains(body, "worker") {
		t.Errorf("got %d %s", status, body)
	}
	if status, _ := get(t, url+"/events"); status != http.StatusNotFound {
		t.Errorf("/events of a worker: %d", status)
	}
}
