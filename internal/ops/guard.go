package ops

import (
	"net/http"
	"strings"
)

// guard lets callers with one of the tokens through to inner. Without one,
// /readyz says whether and not why, since the probes of an orchestrator can
// carry no secret; everything else is refused.
//
// A token comes as RFC 6750's bearer token, or, from a browser that asks its
// user, as the password of RFC 7617's basic authentication with any user name.
func (p Page) guard(inner http.Handler, ready http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, shown := shownToken(r)
		if !shown && r.Method == http.MethodGet && r.URL.Path == "/readyz" {
			ready(w, r)
			return
		}
		if shown {
			ok, err := p.Tokens.Accepts(token)
			if err != nil {
				p.Logger.Warn("the token file of the page of health, status and metrics cannot be read, so nobody is let in", "error", err)
				http.Error(w, "this process cannot read its ops.token_file; see its log", http.StatusServiceUnavailable)
				return
			}
			if ok {
				inner.ServeHTTP(w, r)
				return
			}
			p.Logger.Warn("turned away a caller of the page of health, status and metrics with a wrong token", "peer", r.RemoteAddr, "path", r.URL.Path)
		}
		w.Header().Add("WWW-Authenticate", `Bearer realm="tidemark"`)
		w.Header().Add("WWW-Authenticate", `Basic realm="tidemark: any user, the token as password"`)
		http.Error(w, "show a token of this process' ops.token_file: as a bearer token, or as the password of any user", http.StatusUnauthorized)
	})
}

// shownToken is the token that a request carries.
func shownToken(r *http.Request) (token string, ok bool) {
	if _, password, basic := r.BasicAuth(); basic {
		return password, true
	}
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	return token, ok && strings.EqualFold(scheme, "Bearer")
}
