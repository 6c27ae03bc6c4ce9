package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build builds the tidemark binary from the product's own module, with the
// dependencies that it is released with, and the flags of the Makefile, so that
// both use the same build cache. tags are build tags, which streamer/ring,
// internal/pgoutput and internal/ahead have for tests.
func Build(ctx context.Context, out string, tags ...string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	args := []string{"build", "-o", out}
	if len(tags) > 0 {
		args = append(args, "-tags", strings.Join(tags, ","))
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/tidemark")...)
	cmd.Dir = root
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build tidemark: %w\n%s", err, text)
	}
	return nil
}

// Root is the repository's folder, found upwards from the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for {
		b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(b), "module github.com/tidemark-cdc/tidemark\n") {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("find the repository: the working directory is outside of it")
		}
		dir = parent
	}
}
