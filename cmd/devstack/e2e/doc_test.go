// Package e2e runs Tidemark against real servers: Postgres 15 and 18, Temporal,
// an S3 gateway. It is the one test package of this module that links all of
// them. See package harness for what the tests stand on.
package e2e

import (
	"testing"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// versions are the Postgres versions that Tidemark is tested on.
var versions = []int{15, 18}
