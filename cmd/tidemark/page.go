package main

import (
	"context"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/bearer"
	"github.com/tidemark-cdc/tidemark/internal/config"
	"github.com/tidemark-cdc/tidemark/internal/ops"
	"github.com/tidemark-cdc/tidemark/streamer"
)

// pageStatus is the body of /status, which tidemark status reads.
type pageStatus struct {
	Verb     string           `json:"verb"`
	Version  string           `json:"version"`
	Instance string           `json:"instance"`
	Pipeline string           `json:"pipeline"`
	Ready    bool             `json:"ready"`
	Reasons  []string         `json:"reasons"`
	Streamer *streamer.Status `json:"streamer,omitempty"`
	// Holds says what holds the ack of Streamer.
	Holds *ops.Ack `json:"holds,omitempty"`
}

// page is the service of health, status and metrics; without run if it is off.
func (p *process) page(ctx context.Context) (service, error) {
	addr, set := pageAddress(p.cfg, p.roles)
	if addr == config.OpsOff {
		return service{}, nil
	}
	var tokens *bearer.Tokens
	if file := p.cfg.Ops.TokenFile; file != "" {
		var err error
		if tokens, err = bearer.Follow("the token file of health, status and metrics (ops.token_file)", file, p.logger); err != nil {
			return service{}, refused(err)
		}
	}
	ln, err := ops.Listen(ctx, addr, !set)
	if err != nil {
		return service{}, refused(err)
	}
	if !set && ln.Addr().String() != addr {
		p.logger.Warn("the usual address of health, status and metrics is taken by another process; set ops.listen to have one that stays", "usual", addr, "listen", ln.Addr().String())
	}
	p.logger.Info("health, status and metrics are served", "listen", ln.Addr().String(), "url", "http://"+ln.Addr().String()+"/", "token", tokens != nil)
	page := ops.Page{
		Ready: p.reasons, Status: func() any { return p.status() }, Metrics: p.metrics,
		Tokens: tokens, Level: p.level, Profiles: p.cfg.Ops.Pprof, Logger: p.logger,
	}
	if p.streamer != nil {
		page.Live = p.live()
	}
	return service{name: "the page of health, status and metrics", run: func(ctx context.Context) error { return page.Serve(ctx, ln) }}, nil
}

// pageAddress gives the address of the page, and whether somebody has set it.
func pageAddress(c *config.Config, r roles) (addr string, set bool) {
	switch {
	case c.Ops.Listen != "":
		return c.Ops.Listen, true
	case r.streamer:
		return defaultStreamerPage, false
	}
	return defaultWorkerPage, false
}

// reading is what the metrics of the streamer are read off.
func (p *process) reading() ops.Reading {
	now := time.Now()
	r := readingOf(p.streamer.Status(), now)
	r.TemporalOutage = p.health.temporalOutageFor(now)
	return r
}

// reasons says why the process is not ready.
func (p *process) reasons() []string {
	list := p.health.reasons()
	now := time.Now()
	if p.streamer != nil {
		list = append(list, unready(p.streamer.Status(), p.cfg.Segment.MaxAge, now)...)
	}
	return append(list, p.uploads.reasons(now)...)
}

func (p *process) status() pageStatus {
	reasons := p.reasons()
	s := pageStatus{
		Verb: p.roles.String(), Version: readBuild().Version, Instance: p.instance, Pipeline: p.cfg.Pipeline,
		Ready: len(reasons) == 0, Reasons: append([]string{}, reasons...),
	}
	if p.streamer != nil {
		now := time.Now()
		p.attempts.look(now)
		st := p.streamer.Status()
		s.Streamer, s.Holds = &st, new(p.holds(st, now))
	}
	return s
}
