// Package pipeline runs the tidemark binary, as a user does: a configuration
// file, verbs, child processes. The demo and the end-to-end tests use it.
package pipeline
