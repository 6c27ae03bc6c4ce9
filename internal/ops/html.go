package ops

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
)

// statusPage is the whole page, with its style and its script. It holds no data:
// that comes from /events, to who may have it.
//
//go:embed status.html
var statusPage string

// contentPolicy lets the page run its own style and script, known by their
// hashes, and ask this process; nothing else, from nowhere else.
var contentPolicy = strings.Join([]string{
	"default-src 'none'",
	"script-src '" + hashOf("script") + "'",
	"style-src '" + hashOf("style") + "'",
	"connect-src 'self'",
	"img-src data:", // the icon
	"base-uri 'none'",
	"form-action 'none'",
	"frame-ancestors 'none'",
	"require-trusted-types-for 'script'", // no text becomes markup
	"trusted-types 'none'",
}, "; ")

// hashOf is the hash, as a Content-Security-Policy has it, of the page's only
// element of a name.
func hashOf(element string) string {
	_, rest, _ := strings.Cut(statusPage, "<"+element+">")
	text, _, _ := strings.Cut(rest, "</"+element+">")
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// serveStatusPage answers / on a streamer.
func serveStatusPage(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache")
	io.WriteString(w, statusPage)
}

// serveIndex answers / on a worker, which has no status page.
func serveIndex(w http.ResponseWriter, _ *http.Request) {
	io.WriteString(w, `This is a worker of Tidemark. It has:

/healthz    whether the process answers
/readyz     whether it does its work, and if not, why
/status     what it is, as JSON
/metrics    the same in numbers, for Prometheus
/log-level  the level of its log

The streamer of the pipeline has a status page at its own ops.listen.
`)
}
