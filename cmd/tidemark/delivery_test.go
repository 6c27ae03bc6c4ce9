package main

import (
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/activities"
	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer"
	"github.com/tidemark-cdc/tidemark/streamer/ring"
)

func TestNothingIsReadyWhoseDeliveryIsBlockedForAMinute(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	const maxAge = 10 * time.Second
	first := change.Position{Timeline: 1, LSN: 0x100}
	flight := func(age time.Duration) []streamer.Flight {
		return []streamer.Flight{{Ref: segment.Ref{Pipeline: "shop", First: first, Last: first}, Since: now.Add(-age)}, {Since: now}}
	}
	waiting := func(age time.Duration) ring.Stats {
		return ring.Stats{OldestWaiting: change.TimeOf(now.Add(-age))}
	}
	for name, tc := range map[string]struct {
		st   streamer.Status
		want []string
	}{
		"idle":                         {streamer.Status{}, nil},
		"a segment is under way":       {streamer.Status{InFlight: flight(59 * time.Second)}, nil},
		"it is for too long":           {streamer.Status{InFlight: flight(61 * time.Second)}, []string{first.String(), "since 2026-01-02T11:58:59Z", "tidemark/shop/" + first.String()}},
		"changes wait":                 {streamer.Status{Ring: waiting(69 * time.Second)}, nil},
		"they do for too long":         {streamer.Status{Ring: waiting(71 * time.Second)}, []string{"since 2026-01-02T11:58:49Z", "the log says"}},
		"they wait behind a segment":   {streamer.Status{Ring: waiting(71 * time.Second), InFlight: flight(time.Second)}, nil},
		"a record is being written":    {streamer.Status{Recording: &streamer.Recording{Since: now.Add(-59 * time.Second), Error: "no"}}, nil},
		"it is refused for too long":   {streamer.Status{Recording: &streamer.Recording{Since: now.Add(-61 * time.Second), Error: "the store says no"}}, []string{"since 2026-01-02T11:58:59Z", "the store says no"}},
		"it is unanswered for so long": {streamer.Status{Recording: &streamer.Recording{Since: now.Add(-61 * time.Second)}}, []string{"does not answer"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := blocked(tc.st, maxAge, now)
			if len(got) > 1 || len(got) != min(1, len(tc.want)) {
				t.Fatalf("reasons %q", got)
			}
			has(t, "the reason", strings.Join(got, ""), tc.want...)
		})
	}
}

func TestAStandbyIsReady(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		st   streamer.Status
		want []string
	}{
		"streaming":            {streamer.Status{Connected: true, Phase: streamer.Streaming}, nil},
		"standing by":          {streamer.Status{Phase: streamer.Standby}, nil},
		"waiting for Postgres": {streamer.Status{Phase: streamer.Connecting, State: "waiting for Postgres"}, []string{"not connected to Postgres: waiting for Postgres"}},
		"stopped":              {streamer.Status{Phase: streamer.Stopped, State: "stopped"}, []string{"not connected to Postgres: stopped"}},
		"standing by, with a segment of its own that holds the ack": {
			streamer.Status{Phase: streamer.Standby, InFlight: []streamer.Flight{{Since: now.Add(-time.Hour)}}}, []string{"the ack stands still"}},
		"paused": {streamer.Status{Connected: true, Phase: streamer.Streaming, Paused: &lake.Pause{By: "ann", Since: now, Reason: "the bucket moves"}},
			[]string{"the pipeline is paused by ann", "tidemark resume"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := unready(tc.st, 10*time.Second, now)
			if len(got) != min(1, len(tc.want)) {
				t.Fatalf("reasons %q", got)
			}
			has(t, "the reason", strings.Join(got, ""), tc.want...)
		})
	}
}

func TestAWorkerIsNotReadyWhenNothingSucceedsForAMinute(t *testing.T) {
	begin := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	denied := string(activities.StoreDenied)
	type attempt struct {
		at    time.Duration
		class string
	}
	for name, tc := range map[string]struct {
		attempts []attempt
		at       time.Duration
		want     string
	}{
		"nothing was tried":      {},
		"one has failed":         {[]attempt{{0, denied}}, 5 * time.Minute, ""},
		"some within a minute":   {[]attempt{{0, denied}, {59 * time.Second, denied}}, 2 * time.Minute, ""},
		"all for a minute":       {[]attempt{{0, "FetchFailed"}, {30 * time.Second, denied}, {time.Minute, denied}}, time.Minute, "since 2026-01-02T12:00:00Z, the last at 2026-01-02T12:01:00Z with StoreDenied"},
		"one has succeeded":      {[]attempt{{0, denied}, {30 * time.Second, ""}, {time.Minute, denied}}, time.Minute, ""},
		"others were stopped":    {[]attempt{{0, denied}, {30 * time.Second, "AttemptStopped"}, {time.Minute, "RowsNotYet"}}, time.Minute, ""},
		"it goes on after that":  {[]attempt{{0, denied}, {time.Minute, denied}, {2 * time.Minute, ""}}, 2 * time.Minute, ""},
		"nothing was tried long": {[]attempt{{0, denied}, {time.Minute, denied}}, 12 * time.Minute, ""},
		"it begins anew":         {[]attempt{{0, denied}, {20 * time.Minute, denied}}, 20 * time.Minute, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var f failedUploads
			for _, a := range tc.attempts {
				f.ended(a.class, begin.Add(a.at))
			}
			got := f.reasons(begin.Add(tc.at))
			if tc.want == "" && len(got) > 0 || tc.want != "" && len(got) != 1 {
				t.Fatalf("reasons %q", got)
			}
			has(t, "the reason", strings.Join(got, ""), tc.want)
		})
	}
}
