//go:build !tidemark_next_version

package ahead

// Versions is how many. next.go is another build's.
const Versions = 0
