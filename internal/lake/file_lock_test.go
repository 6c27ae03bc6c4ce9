package lake

import (
	"fmt"
	"io"
	"os"
	"testing"
)

// TestLockHolder is the other process of holdLock: it holds the lock until its
// input ends. In the tests' own process it has nothing to do.
func TestLockHolder(t *testing.T) {
	path := os.Getenv("LAKE_TEST_LOCK")
	if path == "" {
		return
	}
	unlock, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	fmt.Println("locked")
	io.Copy(io.Discard, os.Stdin)
}
