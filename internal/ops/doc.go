// Package ops serves a process' own page over HTTP, and holds its metrics:
//
//	/              a streamer's status page, for people
//	/events        what that page shows, as it changes
//	/healthz       200 as long as the process answers
//	/readyz        200 when it does its work, 503 and the reasons when it does not
//	/status        what the process is doing, as JSON
//	/metrics       the same in numbers, for Prometheus
//	/log-level     the level of the process' log; PUT another one
//	/debug/pprof/  the Go runtime's profiles, if the user has asked for them
//
// The page names tables and positions, though never a row or a secret. It is
// bound to loopback unless the user has set another address, where callers have
// to show a token unless the user has said otherwise.
//
// The package knows no other package of Tidemark but the values of change and
// the tokens of bearer:
// readings come through functions, made by cmd/tidemark, its only user.
package ops
