package main

import (
	"log/slog"

	"github.com/tidemark-cdc/tidemark/internal/config"
	"github.com/tidemark-cdc/tidemark/internal/tracker"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// level says how much a finding matters.
type level string

const (
	levelError   level = "error"
	levelWarning level = "warning"
	levelPass    level = "ok"
)

// finding is one thing that was looked at.
type finding struct {
	Level level `json:"level"`
	// About is where it lies: one of the constants below.
	About string `json:"about"`
	What  string `json:"what"`
	// Fix is what to do, a command where there is one; empty for passes, and
	// where What says all there is.
	Fix string `json:"fix,omitempty"`

	// setup: tidemark setup does it. settle: setup --recreate-slot does. harm: the application's own statements
	// fail. What level these have depends on who looks, see judge.
	setup, settle, harm bool
}

// What findings are about.
const (
	aboutPostgres = "Postgres"
	aboutLake     = "lake"
	aboutTemporal = "Temporal"
	aboutPipeline = "pipeline"
	aboutSettings = "settings"
)

// String is the finding as a sentence with its way out.
func (f finding) String() string {
	text := f.What
	if f.About == aboutPostgres {
		text = "Postgres: " + text
	}
	if f.Fix != "" {
		text += ": " + f.Fix
	}
	return text
}

// purpose is who looks around.
type purpose int

const (
	forCheck purpose = iota
	forSetup
	forRun
	forSettling
)

// judge gives the findings as they are for a purpose. What setup makes is
// nothing to setup, a warning to check and an error to run. That the
// application's statements fail is refused, unless the user has allowed it.
func judge(findings []finding, why purpose, c *config.Config) []finding {
	judged := []finding{}
	for _, f := range findings {
		switch {
		case f.setup && (why == forSetup || why == forSettling), f.settle && why == forSettling:
			continue
		case f.setup && why == forCheck:
			f.Level = levelWarning
		case f.setup:
			f.Level = levelError
		case f.harm && !c.Postgres.AllowMissingIdentity:
			f.Level = levelError
			f.Fix += " (or allow it: --postgres-allow-missing-identity)"
		}
		judged = append(judged, f)
	}
	return judged
}

// refusal is the error that lists all findings of level error; nil without one.
func refusal(findings []finding) error {
	var list []string
	for _, f := range findings {
		if f.Level == levelError {
			list = append(list, f.String())
		}
	}
	if len(list) == 0 {
		return nil
	}
	return refused(&config.InvalidError{Problems: list})
}

// logWarnings logs what works now and will bite later.
func logWarnings(findings []finding, logger *slog.Logger) {
	for _, f := range findings {
		if f.Level == levelWarning {
			logger.Warn("preflight: "+oneLine(f.What), "about", f.About, "fix", f.Fix)
		}
	}
}

func count(findings []finding, of level) int {
	n := 0
	for _, f := range findings {
		if f.Level == of {
			n++
		}
	}
	return n
}

func postgresFinding(l level, p replication.Problem) finding {
	return finding{Level: l, About: aboutPostgres, What: p.What, Fix: p.Do, settle: p.Settle, harm: p.Harm}
}

func temporalFindings(problems []tracker.Problem) []finding {
	var list []finding
	for _, p := range problems {
		list = append(list, finding{Level: levelError, About: aboutTemporal, What: p.What, Fix: p.Do, setup: p.Setup})
	}
	return list
}
