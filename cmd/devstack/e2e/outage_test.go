package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/load"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
)

// outage is how long S3 is away: many times wal_sender_timeout.
const outage = 3 * time.Minute

// S3 is away for minutes under load. The ring fills, nothing more is read from
// Postgres, and the connection stays: the walsender is the same process after
// it. The process says that it is not ready, and why. The test mostly waits, so
// both versions of Postgres wait at the same time.
func TestPostgresStaysConnectedThroughAnOutageOfS3(t *testing.T) {
	for _, version := range versions {
		t.Run(fmt.Sprint("Postgres ", version), func(t *testing.T) {
			t.Parallel()
			h := harness.New(t, harness.Options{
				Postgres:         version,
				PostgresSettings: map[string]string{"wal_sender_timeout": "10s"},
				Settings:         pipeline.Settings{"ring.max_bytes": "2MiB", "segment.max_bytes": "512KiB"},
			})
			p := h.Run()
			p.WaitStreaming()
			l := h.Load(load.Config{Seed: 5, Rate: 500, Largest: 500})
			h.WaitRows(l, 1000)
			walsender := h.Walsender()
			same := func() {
				t.Helper()
				if now := h.Walsender(); now != walsender {
					t.Fatalf("the walsender was process %d and is %d now: the streamer has connected again", walsender, now)
				}
			}

			if err := h.Stack.S3.Stop(); err != nil {
				t.Fatal(err)
			}
			over := time.Now().Add(outage)
			full, reasons := false, []string{}
			h.Eventually(outage+harness.Bound, func() string {
				same()
				full = full || p.Status().Ring.Full
				reasons = p.Ready()
				if left := time.Until(over); left > 0 {
					return fmt.Sprintf("the outage goes on for %s", left)
				}
				return ""
			})
			if !full {
				t.Errorf("the ring was never full, so nothing was blocked: %+v", p.Status().Ring)
			}
			for _, want := range []string{"the ack stands still: segment ", "every upload of this worker has failed since ", "StoreUnreachable"} {
				if !strings.Contains(strings.Join(reasons, "\n"), want) {
					t.Errorf("after an outage of %s the process gives as reasons why it is not ready: %q; want %q", outage, reasons, want)
				}
			}
			if err := h.Stack.S3.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := h.StopLoad(l)
			h.WaitAckFor(2 * harness.Bound)
			same()
			h.Eventually(harness.Bound, func() string { return strings.Join(p.Ready(), "; ") })
			if st := p.Status(); st.Reconnects != 0 {
				t.Errorf("the streamer has connected again %d times", st.Reconnects)
			}
			h.LakeHas(want)
			h.SameAsPostgres()
			p.Stop()
		})
	}
}
