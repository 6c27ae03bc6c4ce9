// Package compose has docker-compose.yml read by the loader of Docker Compose
// itself. That the binary knows what the file gives it, cmd/tidemark tests.
package compose

import (
	"slices"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
)

func TestDockerComposeTakesTheFile(t *testing.T) {
	options, err := cli.NewProjectOptions([]string{"../../../docker-compose.yml"}, cli.WithoutEnvironmentResolution)
	if err != nil {
		t.Fatal(err)
	}
	// Held against Compose's schema; what waits for itself is refused too.
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	up := project.ServiceNames()
	slices.Sort(up)
	if want := []string{"postgres", "s3", "setup", "shop", "streamer", "temporal", "worker"}; !slices.Equal(up, want) {
		t.Errorf("up starts %q, want %q", up, want)
	}
	if w, err := project.GetService("worker"); err != nil || w.GetScale() != 2 {
		t.Errorf("there are %d workers, want 2 (%v)", w.GetScale(), err)
	}
	if _, err := project.GetDisabledService("tidemark"); err != nil {
		t.Errorf("there is no service to run other verbs by: %v", err)
	}
}
