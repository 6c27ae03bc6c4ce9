// Package ops serves a process' own page over HTTP, and holds its metrics:
//
//	/healthz  200 as long as the process answers
//	/readyz   200 when it does its work, 503 and the reasons when it does not
//	/status   what the process is doing, as JSON
//	/metrics  the same in numbers, for Prometheus
//
// The page asks for no password and names tables and positions, though never a
// row or a secret. So it is bound to loopback unless the user has set another
// address; whoever does puts it where only the right people reach it.
//
// The package knows no other package of Tidemark but the values of change:
// readings come through functions, made by cmd/tidemark, its only user.
package ops
