package e2e

import (
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
)

func TestAToastedValueIsReadBackFromTheDatabase(t *testing.T) {
	h := harness.New(t, harness.Options{Postgres: versions[0], NoSetup: true, TemporalMemory: true, Settings: pipeline.Settings{
		"segment.max_age": "100ms", "worker.toast": "lookup", "postgres.tables": []string{"public.docs"},
	}})
	h.SQL(`create table public.docs (id int primary key, body text, n int)`)
	h.SQL(`alter table public.docs alter column body set storage external`)
	h.Setup()
	p := h.Run()
	p.WaitStreaming()
	h.SQL(`insert into public.docs values (1, repeat('long ', 2000), 0)`)
	h.WaitAck()
	// In a segment of its own, so that no image has the value.
	h.SQL(`update public.docs set n = 1`)
	h.WaitAck()
	// A savepoint makes the row version one of a subtransaction, which is not
	// taken for the transaction's.
	h.SQL(`do $$ begin begin update public.docs set n = 2; exception when others then raise; end; end $$`)
	h.WaitAck()
	p.Stop()
	got, err := h.Lake().Query(t.Context(), `select coalesce(length(after->>'body'), -1) as body, array_to_string(read_back, ',') as read_back, array_to_string(unchanged, ',') as unchanged
		from %s order by commit_lsn, ordinal`)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(got) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	want := []string{"body read_back unchanged", "10000", "10000 body", "-1 body"}
	if strings.Join(lines, "|") != strings.Join(want, "|") {
		t.Errorf("the lake has\n%swant %q", got, want)
	}
}
