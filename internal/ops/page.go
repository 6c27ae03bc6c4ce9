package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tidemark-cdc/tidemark/internal/bearer"
)

// Page is what a process shows of itself. The functions are called from many
// goroutines at once, and must return without waiting for anything.
type Page struct {
	// Ready gives the reasons why the process cannot do its work now, a
	// sentence each; none means that it can.
	Ready func() []string
	// Status gives a value to show as JSON.
	Status func() any
	// Live is what the status page shows; nil for a process without one.
	Live *Live
	// Metrics is gathered for /metrics.
	Metrics prometheus.Gatherer
	// Tokens, if set, are those of which a caller must show one, but for
	// /healthz, for whether /readyz is, and for / itself, which holds no data.
	Tokens *bearer.Tokens
	// Level is the level of the process' log, which /log-level shows and sets.
	Level *slog.LevelVar
	// Profiles serves /debug/pprof/.
	Profiles bool
	Logger   *slog.Logger
}

// Readiness is the body of /readyz.
type Readiness struct {
	Ready   bool     `json:"ready"`
	Reasons []string `json:"reasons"`
}

// Listen binds the page's address. Where anyPort is set and the address is
// taken, by another Tidemark process on this machine, say, a free port of the
// same host is taken instead.
func Listen(ctx context.Context, addr string, anyPort bool) (net.Listener, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil && anyPort && errors.Is(err, syscall.EADDRINUSE) {
		if host, _, splitErr := net.SplitHostPort(addr); splitErr == nil {
			ln, err = lc.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s for health, status and metrics: %w; set ops.listen to a free address or to off", addr, err)
	}
	return ln, nil
}

// Serve answers on ln until ctx ends, and closes ln. Requests that are being
// answered then get two seconds, but for those that go on for as long as somebody
// reads: they end at once.
func (p Page) Serve(ctx context.Context, ln net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := newStream(p.Live, p.Logger)
	if p.Live != nil {
		sampled := make(chan struct{})
		go func() { defer close(sampled); events.sample(ctx) }()
		defer func() { cancel(); <-sampled }()
	}
	srv := &http.Server{
		Handler:           p.handler(events),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 5 * time.Second,
		ErrorLog:          slog.NewLogLogger(p.Logger.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve health, status and metrics on %s: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	grace, stop := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer stop()
	if srv.Shutdown(grace) != nil {
		srv.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve health, status and metrics on %s: %w", ln.Addr(), err)
	}
	return nil
}

// Handler answers the paths of the page. Nothing but Serve fills the history.
func (p Page) Handler() http.Handler { return p.handler(newStream(p.Live, p.Logger)) }

func (p Page) handler(events *stream) http.Handler {
	closed := http.NewServeMux()
	closed.HandleFunc("GET /readyz", p.ready(true))
	closed.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		p.reply(w, http.StatusOK, p.Status())
	})
	closed.Handle("GET /metrics", promhttp.HandlerFor(p.Metrics, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(p.Logger.Handler(), slog.LevelWarn),
	}))
	p.handleLevel(closed)
	if p.Profiles {
		handleProfiles(closed)
	}
	open := http.NewServeMux()
	open.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "ok")
	})
	if p.Live != nil {
		closed.Handle("GET /events", events)
		open.HandleFunc("GET /{$}", serveStatusPage)
	} else {
		open.HandleFunc("GET /{$}", serveIndex)
	}
	if p.Tokens == nil {
		open.Handle("/", closed)
	} else {
		open.Handle("/", p.guard(closed, p.ready(false)))
	}
	return open
}

// ready answers /readyz, with or without the reasons why not.
func (p Page) ready(why bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		reasons := p.Ready()
		status := http.StatusOK
		if len(reasons) > 0 {
			status = http.StatusServiceUnavailable
		}
		r := Readiness{Ready: len(reasons) == 0, Reasons: []string{}}
		if why {
			r.Reasons = append(r.Reasons, reasons...)
		}
		p.reply(w, status, r)
	}
}

func (p Page) reply(w http.ResponseWriter, status int, v any) {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		p.Logger.Warn("encode a page", "error", err)
		http.Error(w, "this page cannot be encoded; see the log", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
}
