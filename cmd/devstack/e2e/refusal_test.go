package e2e

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/tally"
)

// What cannot work is refused at the start with status 2 and all its reasons,
// and nothing has changed by it: the slot stands where it stood, and the right
// settings then find every row.
//
// On one version of Postgres: no reason has to do with it.
func TestStartIsRefusedWithAllReasonsAndChangesNothing(t *testing.T) {
	h := harness.New(t, harness.Options{Postgres: 15, TemporalMemory: true})
	another := startPostgres(t, nil)
	physical := startPostgres(t, map[string]string{"wal_level": "replica"})
	ports, err := stack.FreePorts(3)
	if err != nil {
		t.Fatal(err)
	}
	nobody := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", ports[i]) }
	prefix := func(name string) string { return "s3://" + h.Stack.S3.Bucket() + "/" + name }

	// A pipeline whose slot was dropped behind its back.
	dropped := with(t, h, "dropped", pipeline.Settings{"pipeline": "dropped", "lake.url": prefix("dropped")})
	if err := dropped.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.SQL(`select pg_drop_replication_slot('tidemark_dropped')`)

	h.SQL(`insert into public.events values (1, 'a', 'b'), (2, 'a', 'b')`)
	stood := h.Ack()
	for _, c := range []struct {
		name     string
		settings pipeline.Settings
		reasons  []string
	}{
		{"another server", pipeline.Settings{"postgres.url": another.URL()}, []string{"system identifier"}},
		{"the prefix of another pipeline", pipeline.Settings{"pipeline": "other"}, []string{`pipeline "e2e"`}},
		{"a prefix that was not set up", pipeline.Settings{"lake.url": prefix("new")}, []string{"was not set up"}},
		{"another slot", pipeline.Settings{"postgres.slot": "other"}, []string{`"tidemark_e2e"`}},
		{"a slot that is gone", pipeline.Settings{"pipeline": "dropped", "lake.url": prefix("dropped")}, []string{`"tidemark_dropped" of this pipeline is gone`}},
		{"wal_level", pipeline.Settings{"postgres.url": physical.URL()}, []string{"wal_level is replica"}},
		{"a bucket that is not there", pipeline.Settings{"lake.url": "s3://nowhere/e2e"}, []string{"nowhere"}},
		{"a namespace that is not there", pipeline.Settings{"temporal.namespace": "nowhere"},
			[]string{"Temporal has no namespace nowhere", "temporal operator namespace create --namespace nowhere"}},
		{"Postgres and the lake at once", pipeline.Settings{"postgres.url": physical.URL(), "lake.url": prefix("new")},
			[]string{"2 reasons", "wal_level is replica", "was not set up"}},
		{"servers that do not answer", pipeline.Settings{
			"postgres.url": "postgres://postgres@" + nobody(0) + "/postgres", "lake.endpoint": "http://" + nobody(1), "temporal.address": nobody(2),
		}, []string{"3 reasons", nobody(0)[len("127.0.0.1:"):], nobody(1), nobody(2)}},
		{"settings that are none", pipeline.Settings{"segment.max_rows": 0, "pipeline": "No Good"}, []string{"3 reasons", "segment.max_rows", "pipeline", "postgres.slot"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := with(t, h, "refused", c.settings)
			for _, verb := range []string{"run", "streamer"} {
				r, err := p.Verb(t.Context(), verb, "--ops-listen=off")
				if err != nil {
					t.Fatal(err)
				}
				if r.Code != 2 {
					t.Errorf("tidemark %s ended with status %d, want 2:\n%s", verb, r.Code, r.Stderr)
				}
				for _, reason := range c.reasons {
					if !strings.Contains(r.Stderr, reason) {
						t.Errorf("tidemark %s does not say %q:\n%s", verb, reason, r.Stderr)
					}
				}
			}
			if now := h.Ack(); now != stood {
				t.Errorf("the slot stood at %s and stands at %s now", stood, now)
			}
		})
	}
	if n := len(h.Objects()); n != 0 {
		t.Errorf("%d objects are in the lake", n)
	}
	p := h.Run()
	h.WaitAck()
	h.LakeHas(tally.Counts{{Table: "public.events", Operation: "insert"}: 2})
	p.Stop()
}

// with is the harness's pipeline with other settings.
func with(t *testing.T, h *harness.Harness, name string, settings pipeline.Settings) *pipeline.Pipeline {
	t.Helper()
	all := maps.Clone(h.Settings)
	maps.Copy(all, settings)
	p := *h.Pipeline
	p.Config = filepath.Join(h.Stack.Dir(), name+".yaml")
	if err := all.Write(p.Config); err != nil {
		t.Fatal(err)
	}
	return &p
}

func startPostgres(t *testing.T, settings map[string]string) *stack.Postgres {
	t.Helper()
	pg, err := stack.NewPostgres(stack.PostgresOptions{Version: 15, Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pg.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := pg.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return pg
}
