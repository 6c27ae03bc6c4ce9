package e2e

import (
	"context"
	"strings"
	"testing"

	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// manyTables is how many tables one transaction, and so one segment, has rows of.
const manyTables = 10_000

// Temporal's bounds on one payload and one history are 2 MiB and 50 MiB, by
// default. What a segment takes is far below, whatever it has rows of.
const (
	largestEvent   = 16 << 10
	largestHistory = 64 << 10
)

// A segment of ten thousand tables is as small in Temporal as any other.
//
// On one version of Postgres: Temporal has nothing to do with it.
func TestASegmentOfTenThousandTablesIsSmallInTemporal(t *testing.T) {
	t.Parallel()
	h := harness.New(t, harness.Options{
		Postgres: 15, TemporalMemory: true,
		Settings:         pipeline.Settings{"segment.max_rows": 2 * manyTables, "postgres.allow_missing_identity": true},
		PostgresSettings: map[string]string{"max_locks_per_transaction": "1024"},
	})
	h.SQL(`do $$ begin
		for i in 1 .. 10000 loop
			execute format('create table public.%I (id bigint)', 'a_long_name_of_a_table_with_a_"quote"_and_a_number_' || i);
			if i % 500 = 0 then commit; end if;
		end loop;
	end $$`)
	p := h.Run()
	p.WaitStreaming()
	h.SQL(`do $$ begin
		for i in 1 .. 10000 loop
			execute format('insert into public.%I values (%s)', 'a_long_name_of_a_table_with_a_"quote"_and_a_number_' || i, i);
		end loop;
	end $$`)
	h.WaitAck()
	sum, err := h.Lake().Query(t.Context(), `select count(*) as rows, count(distinct "table") as tables, count(distinct json_extract(after, '$.id')) as ids from %s`)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(sum); len(got) != 6 || got[3] != "10000" || got[4] != "10000" || got[5] != "10000" {
		t.Errorf("of a row in each of 10,000 tables the lake has\n%s", sum)
	}
	h.Sound()

	objects := h.Objects()
	if len(objects) != 1 {
		t.Fatalf("%d objects are in the lake, want one", len(objects))
	}
	c := dialTemporal(t, h)
	ctx, cancel := context.WithTimeout(t.Context(), harness.Bound)
	defer cancel()
	id := segment.WorkflowID("e2e", objects[0].First)
	described, err := c.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		t.Fatal(err)
	}
	info := described.GetWorkflowExecutionInfo()
	var ref segment.Ref
	if err := converter.GetDefaultDataConverter().FromPayload(info.GetMemo().GetFields()["ref"], &ref); err != nil {
		t.Fatal(err)
	}
	if ref.TableCount != manyTables || ref.Rows != manyTables {
		t.Errorf("the record has %d tables and %d rows", ref.TableCount, ref.Rows)
	}
	for what, size := range map[string]int{"the memo": proto.Size(info.GetMemo()), "the search attributes": proto.Size(info.GetSearchAttributes())} {
		if size > largestEvent {
			t.Errorf("%s has %d bytes", what, size)
		}
	}
	for _, e := range history(t, ctx, c, id) {
		if size := proto.Size(e); size > largestEvent {
			t.Errorf("event %d, %s, has %d bytes", e.GetEventId(), e.GetEventType(), size)
		}
	}
	if size := info.GetHistorySizeBytes(); size == 0 || size > largestHistory {
		t.Errorf("the history has %d bytes", size)
	}
	p.Stop()
}
