// Package e2e runs Tidemark against real servers: Postgres 15 and 18, Temporal,
// an S3 gateway. It is the one test package of this module that links all of
// them. See package harness for what the tests stand on.
//
// Each test is a scenario with processes of the built binary, and ends by
// holding the lake, as DuckDB reads it, against what was committed. A scenario
// runs on both versions of Postgres, except where the version cannot matter:
// refusals at the start, and the comparison with a naive ack. One that costs
// minutes because it waits (an outage of S3 that lasts longer than many
// wal_sender_timeouts) waits for both versions at the same time.
package e2e

import (
	"testing"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// versions are the Postgres versions that Tidemark is tested on.
var versions = []int{15, 18}
