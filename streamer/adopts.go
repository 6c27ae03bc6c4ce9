//go:build !tidemark_naive_adopt

package streamer

// adopts says that a boundary which was recorded before holds, and not the one
// that this process would choose. adopts_naive.go is what happens otherwise.
const adopts = true
