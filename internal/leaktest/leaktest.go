// Package leaktest fails a package's tests when goroutines of theirs are left at
// the end.
//
// goleak by itself waits for less than half a second. On a busy machine that is
// not enough for goroutines that were told to end, such as those of connections
// that were closed, to get round to it.
package leaktest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines may take to end. Only a leak waits for all of it.
const patience = 30 * time.Second

// Main is the whole TestMain of a package.
func Main(m *testing.M, options ...goleak.Option) { os.Exit(Run(m, options...)) }

// Run runs a package's tests and gives the status to exit with.
func Run(m *testing.M, options ...goleak.Option) int {
	code := m.Run()
	if code == 0 {
		if err := Find(options...); err != nil {
			fmt.Fprintln(os.Stderr, "goleak:", err)
			code = 1
		}
	}
	return code
}

// Find is goleak.Find with more patience.
func Find(options ...goleak.Option) error {
	for end := time.Now().Add(patience); ; {
		err := goleak.Find(options...)
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}
