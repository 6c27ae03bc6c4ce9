package ops

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
)

// levels are those that log.level takes.
var levels = []string{"debug", "info", "warn", "error"}

// handleLevel adds GET and PUT of /log-level: the level of the process' log, as
// plain text. Nothing of it outlives the process.
func (p Page) handleLevel(mux *http.ServeMux) {
	if p.Level == nil {
		return
	}
	show := func(w http.ResponseWriter) { fmt.Fprintln(w, strings.ToLower(p.Level.Level().String())) }
	mux.HandleFunc("GET /log-level", func(w http.ResponseWriter, _ *http.Request) { show(w) })
	mux.HandleFunc("PUT /log-level", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 64))
		name := strings.ToLower(strings.TrimSpace(string(body)))
		if err != nil || !slices.Contains(levels, name) {
			http.Error(w, "want one of "+strings.Join(levels, ", ")+" as the body", http.StatusBadRequest)
			return
		}
		var level slog.Level
		if err := level.UnmarshalText([]byte(name)); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		before := p.Level.Level()
		// Told at a level that is logged whichever way the change goes.
		p.Level.Set(min(before, level))
		p.Logger.Log(r.Context(), max(slog.LevelInfo, p.Level.Level()), "the level of the log is changed", "from", strings.ToLower(before.String()), "to", name, "peer", r.RemoteAddr)
		p.Level.Set(level)
		show(w)
	})
}
