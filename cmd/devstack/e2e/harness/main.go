package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
)

// binaryVariable names the tidemark binary under test.
const binaryVariable = "DEVSTACK_TIDEMARK"

// Main is the whole TestMain of a package of end-to-end tests: it is the child
// of a stack when it was started as one, else it builds the binary and runs the
// tests.
func Main(m *testing.M) {
	stack.Main()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if os.Getenv(binaryVariable) == "" {
		dir, err := os.MkdirTemp("", "tidemark-e2e-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary := filepath.Join(dir, "tidemark")
		if err := pipeline.Build(context.Background(), binary); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		os.Setenv(binaryVariable, binary)
	}
	return m.Run()
}
