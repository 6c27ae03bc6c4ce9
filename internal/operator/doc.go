// Package operator is what a person sees of a pipeline's segments in Temporal,
// and does to them: the verbs tidemark segments and tidemark replay. Nothing but
// Temporal is asked; no streamer needs to run.
//
// Unlike package tracker it reads Temporal's visibility store, which lags behind
// by a moment: it is for people. What is open is described besides, so its state
// is the present one. And unlike there a call is made once, within a bound: a
// person sees the error and tries again.
package operator
