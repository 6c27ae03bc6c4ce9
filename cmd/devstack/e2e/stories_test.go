package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
)

const oddTable = `"Sales 1"."Ord.er ""x"" #_%"`

// episode is a statement, or several in one transaction, and the lake's rows that
// come of it.
type episode struct {
	sql  string
	rows []string
}

var episodes = []episode{
	// Its generated column is not sent.
	{`insert into ` + oddTable + ` values (1, 'ü')`, []string{`insert  ` + oddTable + `  -  {"Id":1,"näme":"ü"}`}},
	{`update ` + oddTable + ` set "Id" = 2`, []string{`update  ` + oddTable + `  {"Id":1}  {"Id":2,"näme":"ü"}`}},

	// Replica identities.
	{`insert into public.t values (1, 'a', 1.50), (2, null, 'NaN')`, []string{
		`insert  public.t  -  {"id":1,"v":"a","n":1.50}`, `insert  public.t  -  {"id":2,"v":null,"n":"NaN"}`}},
	{`update public.t set v = 'b' where id = 1`, []string{`update  public.t  -  {"id":1,"v":"b","n":1.50}`}},
	{`alter table public.t replica identity full`, nil},
	{`update public.t set v = 'c' where id = 1`, []string{`update  public.t  {"id":1,"v":"b","n":1.50}  {"id":1,"v":"c","n":1.50}`}},
	{`delete from public.t where id = 2`, []string{`delete  public.t  {"id":2,"v":null,"n":"NaN"}  -`}},
	{`alter table public.t replica identity default`, nil},
	{`delete from public.t`, []string{`delete  public.t  {"id":1}  -`}},

	// A table that changes within a transaction, and vanishes.
	{`insert into public.t values (3, 'd', 1); alter table public.t add column w text default 'w'; insert into public.t values (4, 'e', 2);
	  alter table public.t rename v to x; alter table public.t alter n type text using 'n' || n; update public.t set x = 'f' where id = 3;
	  alter table public.t drop column x; delete from public.t where id = 3; insert into public.t values (5, 'g', 'h')`, []string{
		`insert  public.t  -  {"id":3,"v":"d","n":1}`, `insert  public.t  -  {"id":4,"v":"e","n":2,"w":"w"}`,
		`update  public.t  -  {"id":3,"x":"f","n":"n1","w":"w"}`, `delete  public.t  {"id":3}  -`, `insert  public.t  -  {"id":5,"n":"g","w":"h"}`}},
	{`insert into public.u values (1, 4)`, []string{`insert  public.u  -  {"id":1,"t":4}`}},
	{`truncate public.t restart identity cascade`, []string{`truncate  public.t  -  -`, `truncate  public.u  -  -`}},
	{`drop table public.u; create table public.u (a text primary key); alter publication tidemark_e2e add table public.u; insert into public.u values ('again')`,
		[]string{`insert  public.u  -  {"a":"again"}`}},

	// Messages, and what came from elsewhere.
	{`select pg_logical_emit_message(true, 'app', 'inside'), pg_logical_emit_message(false, 'app', 'at once')`, []string{
		`message  -  -  {"prefix":"app","content":"at once"}`, `message  -  -  {"prefix":"app","content":"inside"}`}},
	{`select pg_replication_origin_create('elsewhere'), pg_replication_origin_session_setup('elsewhere')`, nil},
	{`insert into public.u values ('from elsewhere')`, nil},
	{`select pg_replication_origin_session_reset()`, nil},
	{`insert into public.u values ('prepared'); prepare transaction 'e2e'`, nil},
	{`insert into public.u values ('before')`, []string{`insert  public.u  -  {"a":"before"}`}},
	{`commit prepared 'e2e'`, []string{`insert  public.u  -  {"a":"prepared"}`}},

	// Partitions, under the name of their root: the second has its columns in
	// another order.
	{`insert into public.root values (1, 2023, 'a'), (2, 2024, 'b')`, []string{
		`insert  public.root  -  {"id":1,"year":2023,"v":"a"}`, `insert  public.root  -  {"id":2,"year":2024,"v":"b"}`}},
	{`update public.root set year = 2024 where id = 1`, []string{`delete  public.root  {"id":1,"year":2023}  -`, `insert  public.root  -  {"id":1,"year":2024,"v":"a"}`}},
	{`truncate public.root`, []string{`truncate  public.root  -  -`}},
	{`insert into public.root values (2, 2024, 'b')`, []string{`insert  public.root  -  {"id":2,"year":2024,"v":"b"}`}},
}

// What package internal/stories tells the parts, through the binary and into
// files that another program reads.
func TestStoriesReachTheLakeAsTheyWereTold(t *testing.T) {
	opt := harness.Options{NoSetup: true, TemporalMemory: true,
		PostgresSettings: map[string]string{"max_prepared_transactions": "5"},
		Settings: pipeline.Settings{
			"segment.max_rows": 5, "segment.max_age": "100ms", "postgres.messages": true, "postgres.origin": "none", "postgres.via_partition_root": true,
			"postgres.tables": []string{oddTable, "public.T", "public.u", "public.root"},
		}}
	onEach(t, opt, func(t *testing.T, h *harness.Harness) {
		for _, sql := range []string{
			`create schema "Sales 1"`, `create table ` + oddTable + ` ("Id" int primary key, "näme" text, twice int generated always as ("Id" * 2) stored)`,
			`create table public.t (id int primary key, v text, n numeric)`,
			`create table public.u (id int primary key, t int references public.t)`,
			`create table public.root (id int, year int, v text, primary key (id, year)) partition by list (year)`,
			`create table public.y2023 partition of public.root for values in (2023)`,
			`create table public.y2024 (v text, year int not null, id int not null)`,
			`alter table public.root attach partition public.y2024 for values in (2024)`,
		} {
			h.SQL(sql)
		}
		h.Setup()
		p := h.Run()
		p.WaitStreaming()
		var want []string
		for _, s := range episodes {
			h.SQL(s.sql)
			want = append(want, s.rows...)
		}
		h.WaitAck()
		compareLake(t, h, want)

		// A root's new name does not come to a connection that knows the old one,
		// and comes to the next: whose rows they are is the same.
		hold := h.Stack.Faults.Hold(new(harness.Upload).Match, 0)
		h.SQL(`alter table public.root rename to stem`)
		h.SQL(`insert into public.stem values (3, 2024, 'c')`)
		h.WaitHits(hold, 1)
		p.Kill9()
		hold.Remove()
		p = h.Run()
		h.WaitAck()
		if p.Status().Adopted == 0 {
			t.Error("the process that came after the kill has adopted nothing")
		}
		h.SQL(`insert into public.stem values (4, 2023, 'd')`)
		h.WaitAck()
		compareLake(t, h, append(want, underEitherName(t, h, `{"id":3,"year":2024,"v":"c"}`), `insert  public.stem  -  {"id":4,"year":2023,"v":"d"}`))
		h.Sound()
		shown(t, h, oddTable)
		p.Stop()
	})
}

// underEitherName is the insert of a row that has the root's old name if the
// upload of the process that was killed arrived, and else its new one.
func underEitherName(t *testing.T, h *harness.Harness, after string) string {
	t.Helper()
	got, err := h.Lake().Changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if old := "insert  public.root  -  " + after; slices.Contains(got, old) {
		return old
	}
	return "insert  public.stem  -  " + after
}

func compareLake(t *testing.T, h *harness.Harness, want []string) {
	t.Helper()
	got, err := h.Lake().Changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Fatalf("the lake lacks\n%s", strings.Join(want[i:], "\n"))
		case i >= len(want):
			t.Fatalf("the lake has besides\n%s", strings.Join(got[i:], "\n"))
		case got[i] != want[i]:
			t.Fatalf("row %d of the lake is\n%s\nwant\n%s", i+1, got[i], want[i])
		}
	}
}

// shown waits until Temporal shows a table on a segment. (It is not searched for:
// the development server's SQLite takes no double quotes in a value.)
func shown(t *testing.T, h *harness.Harness, table string) {
	t.Helper()
	c := dialTemporal(t, h)
	h.Eventually(harness.Bound, func() string {
		r, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: h.Stack.Temporal.Namespace(), Query: "TidemarkPipeline = 'e2e'"})
		if err != nil {
			return err.Error()
		}
		for _, e := range r.Executions {
			var tables []string
			if err := converter.GetDefaultDataConverter().FromPayload(e.SearchAttributes.GetIndexedFields()["TidemarkTables"], &tables); err == nil && slices.Contains(tables, table) {
				return ""
			}
		}
		return fmt.Sprintf("of %d segments none is shown with rows of %s", len(r.Executions), table)
	})
}
