package ops

import (
	"net/http"
	"net/http/pprof"
)

// handleProfiles adds the Go runtime's profiles. A heap profile has no memory
// contents, but /debug/pprof/cmdline has the arguments: those hold no secret.
func handleProfiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
}
