package replication

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

func TestSetupTwiceChangesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		ctx := t.Context()
		execute(t, d.conn, `CREATE SCHEMA "Odd ""Name"`, `CREATE TABLE "Odd ""Name"."T.able;" (id int PRIMARY KEY)`, "CREATE TABLE other (id int)")
		name := `pub "quoted", ` + d.name
		tables := []string{`"Odd ""Name"."T.able;"`, "T"}
		for i, want := range []bool{true, false} {
			created, err := d.admin.CreatePublication(ctx, name, Published{Tables: tables})
			if err != nil || created != want {
				t.Fatalf("call %d: created %v, %v", i+1, created, err)
			}
		}
		n := ask[int](t, d.conn, "SELECT count(*) FROM pg_publication_tables WHERE pubname = $1", name)
		if n != 2 {
			t.Errorf("%d tables are published", n)
		}
		if _, err := d.admin.CreatePublication(ctx, name, Published{Tables: []string{"other"}}); !errors.Is(err, ErrPublicationDiffers) || !strings.Contains(err.Error(), `ADD TABLE "public"."other"`) {
			t.Errorf("another table: %v", err)
		}
		if _, err := d.admin.CreatePublication(ctx, name, Published{}); !errors.Is(err, ErrPublicationDiffers) {
			t.Errorf("all tables: %v", err)
		}
		if created, err := d.admin.CreatePublication(ctx, d.name, Published{Tables: []string{"other"}}); created || err != nil {
			t.Errorf("one of all tables has every table: %v, %v", created, err)
		}
		if _, err := d.admin.CreatePublication(ctx, "p2", Published{Tables: []string{"nonesuch"}}); err == nil {
			t.Error("a table that does not exist was published")
		}
		// The name also passes through START_REPLICATION.
		cfg := d.config()
		cfg.Publications = []string{name, d.name}
		s := d.started(t, cfg)
		r := receiveAll(t, s, true)
		execute(t, d.conn, `INSERT INTO "Odd ""Name"."T.able;" VALUES (1)`)
		eventually(t, "the row comes", func() bool { return r.rows.Load() == 1 })

		if _, err := d.admin.CreateSlot(ctx, d.name, false); !errors.Is(err, ErrSlotExists) {
			t.Errorf("a second slot: %v", err)
		}
		if _, err := d.admin.DropSlot(ctx, d.name); !errors.Is(err, ErrSlotInUse) || !strings.Contains(err.Error(), "stop the streamer") {
			t.Errorf("drop an active slot: %v", err)
		}
		if err := s.Close(ctx); err != nil {
			t.Fatal(err)
		}
		for i, want := range []bool{true, false} {
			dropped, err := d.admin.DropSlot(ctx, d.name)
			if err != nil || dropped != want {
				t.Errorf("call %d: dropped the slot: %v, %v", i+1, dropped, err)
			}
			dropped, err = d.admin.DropPublication(ctx, name)
			if err != nil || dropped != want {
				t.Errorf("call %d: dropped the publication: %v, %v", i+1, dropped, err)
			}
		}
		if _, err := d.admin.Slot(ctx); !errors.Is(err, ErrSlotMissing) {
			t.Errorf("look at the dropped slot: %v", err)
		}
		if _, err := d.admin.SlotOwner(ctx, d.name); !errors.Is(err, ErrSlotMissing) {
			t.Errorf("owner of the dropped slot: %v", err)
		}
		if _, err := d.admin.CreateSlot(ctx, "No Such", false); err == nil {
			t.Error("a slot of a bad name was made")
		}
		failover := d.srv.Version() >= 17
		_, err := d.admin.CreateSlot(ctx, d.name, true)
		if (err == nil) != failover {
			t.Errorf("a slot that survives a failover: %v", err)
		}
		if err == nil && !d.slot(t).Failover {
			t.Error("the slot does not survive a failover")
		}
	})
}

func TestAPublicationViaTheRoot(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		ctx := t.Context()
		name := "root_" + d.name
		execute(t, d.conn, "CREATE TABLE r (id int PRIMARY KEY) PARTITION BY RANGE (id)",
			`CREATE TABLE "Leaf.1" PARTITION OF r FOR VALUES FROM (0) TO (10)`)
		for i, want := range []bool{true, false} {
			created, err := d.admin.CreatePublication(ctx, name, Published{Tables: []string{"public.r"}, ViaRoot: true})
			if err != nil || created != want {
				t.Fatalf("call %d: created %v, %v", i+1, created, err)
			}
		}
		if got := ask[string](t, d.conn, "SELECT tablename FROM pg_publication_tables WHERE pubname = $1", name); got != "r" {
			t.Errorf("%s is published", got)
		}
		// d.name is one of all tables, under their own names.
		_, err := d.admin.CreatePublication(ctx, d.name, Published{ViaRoot: true})
		if !errors.Is(err, ErrPublicationDiffers) || !strings.Contains(err.Error(), "SET (publish_via_partition_root = true)") {
			t.Errorf("one that exists without it: %v", err)
		}
		if created, err := d.admin.CreatePublication(ctx, name, Published{Tables: []string{"r"}}); created || err != nil {
			t.Errorf("one that exists with it will do: %v, %v", created, err)
		}
		if created, err := d.admin.CreatePublication(ctx, "all_"+name, Published{ViaRoot: true}); !created || err != nil {
			t.Errorf("of all tables: %v, %v", created, err)
		}
	})
}

func TestWhatAPublicationWouldHarmIsSeenWithoutMakingIt(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		cfg := d.config()
		cfg.Publications = []string{"ahead_" + d.name}
		admin, err := NewAdmin(cfg, discard())
		if err != nil {
			t.Fatal(err)
		}
		execute(t, d.conn, "CREATE TABLE noid (n int)")
		f, err := admin.InspectAhead(t.Context(), Published{Tables: []string{"t", "noid"}})
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"public.noid"}; !reflect.DeepEqual(f.WithoutIdentity, want) || f.Unpublishable != "" {
			t.Errorf("without identity: %v, want %v; %s", f.WithoutIdentity, want, f.Unpublishable)
		}
		if f.Publications[0].Exists || ask[bool](t, d.conn, "SELECT EXISTS (SELECT FROM pg_publication WHERE pubname = 'ahead_"+d.name+"')") {
			t.Error("the publication was made")
		}
		for _, tables := range [][]string{{"no_such_table"}, {`"open`}} {
			f, err := admin.InspectAhead(t.Context(), Published{Tables: tables})
			if err != nil || f.Unpublishable == "" {
				t.Errorf("%q: got %q and %v, want that it cannot be published", tables, f.Unpublishable, err)
			}
			if !strings.Contains(fmt.Sprint(Check(f)), f.Unpublishable) {
				t.Errorf("%q: the check does not say it: %v", tables, Check(f))
			}
		}
	})
}

func TestTheIdentityOfPartitionsIsLookedAtWhereTheirRootIsPublished(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		name := "root_" + d.name
		execute(t, d.conn, "CREATE TABLE r (id int, k int) PARTITION BY RANGE (id)",
			"CREATE TABLE bare PARTITION OF r FOR VALUES FROM (0) TO (10)",
			"CREATE TABLE nested PARTITION OF r FOR VALUES FROM (10) TO (20) PARTITION BY LIST (k)",
			"CREATE TABLE keyed PARTITION OF nested DEFAULT", "ALTER TABLE keyed ADD PRIMARY KEY (id)",
			"CREATE TABLE whole PARTITION OF r FOR VALUES FROM (20) TO (30)", "ALTER TABLE whole REPLICA IDENTITY FULL",
			"ALTER TABLE r REPLICA IDENTITY FULL",
			"CREATE PUBLICATION "+name+" FOR TABLE r WITH (publish_via_partition_root)")
		cfg := d.config()
		cfg.Publications = []string{name}
		admin, err := NewAdmin(cfg, discard())
		if err != nil {
			t.Fatal(err)
		}
		f, err := admin.Inspect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"public.bare"}; !reflect.DeepEqual(f.WithoutIdentity, want) {
			t.Errorf("without identity: %v, want %v", f.WithoutIdentity, want)
		}
		if want := []string{"public.keyed"}; !reflect.DeepEqual(f.MixedIdentity, want) {
			t.Errorf("mixed identity: %v, want %v", f.MixedIdentity, want)
		}
		contains(t, Warnings(f), "identity: public.bare", "the other: public.keyed")
	})
}

func TestTablesWhoseIdentityIsNotPublishedAreNamed(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		name := "part_" + d.name
		execute(t, d.conn, "CREATE TABLE listed (id int PRIMARY KEY, v text)", "CREATE TABLE lacks (id int PRIMARY KEY, v text)",
			"CREATE TABLE whole (id int, v text)", "ALTER TABLE whole REPLICA IDENTITY FULL",
			"CREATE TABLE generated (id int, g int GENERATED ALWAYS AS (id) STORED)", "ALTER TABLE generated REPLICA IDENTITY FULL",
			"CREATE TABLE harmless (id int PRIMARY KEY, g int GENERATED ALWAYS AS (id) STORED)",
			"CREATE PUBLICATION "+name+" FOR TABLE listed (id), lacks (v), whole (id), generated, harmless")
		cfg := d.config()
		cfg.Publications = []string{name}
		admin, err := NewAdmin(cfg, discard())
		if err != nil {
			t.Fatal(err)
		}
		f, err := admin.Inspect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// What Postgres does is the oracle.
		var refused []string
		for _, table := range []string{"generated", "harmless", "lacks", "listed", "whole"} {
			if _, err := d.conn.Exec(t.Context(), "DELETE FROM "+table); err != nil {
				refused = append(refused, "public."+table)
			}
		}
		if !reflect.DeepEqual(f.PartOfIdentity, refused) || len(refused) < 2 || len(f.WithoutIdentity) > 0 {
			t.Errorf("named: %v, refused: %v; without identity: %v", f.PartOfIdentity, refused, f.WithoutIdentity)
		}
		contains(t, Warnings(f), "not published: "+strings.Join(refused, ", "))
	})
}

func TestSlotThatWasAdvancedStartsFromItsOwnPosition(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		execute(t, d.conn, "INSERT INTO t VALUES (1, 'a')")
		mark := ask[string](t, d.conn, "SELECT pg_current_wal_lsn()::text")
		execute(t, d.conn, "INSERT INTO t VALUES (2, 'b')", "SELECT pg_replication_slot_advance('"+d.name+"', '"+mark+"')")
		s := d.started(t, d.config())
		r := receiveAll(t, s, false)
		eventually(t, "the second row comes", func() bool { return r.commits.Load() == 1 })
		if r.rows.Load() != 1 {
			t.Errorf("%d rows came", r.rows.Load())
		}
		if st := d.slot(t); s.ConfirmedFlush() != st.ConfirmedFlush || st.LagBytes <= 0 || st.RetainedBytes < st.LagBytes || !st.Active || st.ActivePID != s.PID() {
			t.Errorf("slot %+v, the stream began at %s", st, s.ConfirmedFlush())
		}
	})
}

func TestAdminLeavesNoConnectionBehind(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		if _, err := d.admin.Inspect(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := d.admin.FlushLSN(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "no connection is left", func() bool {
			return ask[int](t, d.conn, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tidemark/' || current_database()") == 0
		})
	})
}

func TestSoundServerHasNoProblems(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		execute(t, d.conn, "CREATE TABLE noid (v int)", "CREATE TABLE fullid (v int)", "ALTER TABLE fullid REPLICA IDENTITY FULL",
			"CREATE TABLE nothing (id int PRIMARY KEY)", "ALTER TABLE nothing REPLICA IDENTITY NOTHING",
			"CREATE PUBLICATION empty_"+d.name+" WITH (publish = 'insert, delete')")
		cfg := d.config()
		cfg.Publications = append(cfg.Publications, "empty_"+d.name)
		admin, err := NewAdmin(cfg, discard())
		if err != nil {
			t.Fatal(err)
		}
		f, err := admin.Inspect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if ps := Check(f); len(ps) != 0 {
			t.Errorf("problems %v", ps)
		}
		if want := []string{"public.noid", "public.nothing"}; !reflect.DeepEqual(f.WithoutIdentity, want) {
			t.Errorf("without identity: %v, want %v", f.WithoutIdentity, want)
		}
		contains(t, Warnings(f), "max_slot_wal_keep_size is unlimited", "has no tables", "leaves out update, truncate", "public.noid, public.nothing")
		if f.WALSenderTimeout != time.Minute || f.MaxSlotWALKeep >= 0 || f.MaxSlots != 20 || f.Slots < 1 || f.WALEnd < d.start || f.Role != "postgres" {
			t.Errorf("facts %+v", f)
		}
	})
}

func TestUnpreparedServerHasAllItsProblemsAtOnce(t *testing.T) {
	d := newDatabase(t, servers[15])
	execute(t, d.conn, "CREATE ROLE bare_"+d.name+" LOGIN")
	t.Cleanup(func() { d.conn.Exec(context.Background(), "DROP ROLE bare_"+d.name) })
	cfg := d.config()
	cfg.ConnString, cfg.Slot, cfg.Publications = d.srv.URLFor("bare_"+d.name, "", d.name), "nonesuch", []string{"p1", "p2"}
	admin, err := NewAdmin(cfg, discard())
	if err != nil {
		t.Fatal(err)
	}
	f, err := admin.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	contains(t, Check(f), "may not replicate", `slot "nonesuch" does not exist`, `publication "p1"`, `publication "p2"`)
	if _, err := admin.CreateSlot(t.Context(), "nonesuch", false); err == nil || !strings.Contains(err.Error(), "REPLICATION") {
		t.Errorf("create a slot: %v", err)
	}
	if _, err := admin.CreatePublication(t.Context(), "p1", Published{}); err == nil || !strings.Contains(err.Error(), "CREATE on the database") {
		t.Errorf("create a publication: %v", err)
	}
}

func TestCheckSaysWhatToDo(t *testing.T) {
	sound := func() Facts {
		return Facts{ServerVersion: 180004, Database: "d", Role: "r", MayReplicate: true, WALLevel: "logical", Slots: 1, MaxSlots: 10,
			WALSenders: 1, MaxWALSenders: 10, WALSenderTimeout: time.Minute, MaxSlotWALKeep: 100 << 30, SlotName: "s",
			SynchronizedStandbySlots: "sb",
			Slot:                     &SlotInfo{Name: "s", Type: "logical", Plugin: "pgoutput", Database: "d", WALStatus: "reserved"},
			Publications:             []PublicationInfo{{Name: "p", Exists: true, Tables: 1, Inserts: true, Updates: true, Deletes: true, Truncates: true}}}
	}
	if ps, ws := Check(sound()), Warnings(sound()); len(ps)+len(ws) != 0 {
		t.Fatalf("problems %v, warnings %v of a sound server", ps, ws)
	}
	for _, c := range []struct {
		change  func(*Facts)
		problem string // empty: none
		warning string
	}{
		{func(f *Facts) { f.ServerVersion = 140011 }, "older than 15", ""},
		{func(f *Facts) { f.InRecovery = true }, "in recovery", ""},
		{func(f *Facts) { f.WALLevel = "replica" }, "wal_level is replica", ""},
		{func(f *Facts) { f.MayReplicate = false }, `ALTER ROLE "r" REPLICATION`, ""},
		{func(f *Facts) { f.WALSenders = 10 }, "max_wal_senders", ""},
		{func(f *Facts) { f.WALSenders, f.Slot.Active = 10, true }, "", ""},
		{func(f *Facts) { f.Slot = nil }, "run tidemark setup", ""},
		{func(f *Facts) { f.Slot, f.Slots = nil, 10 }, "max_replication_slots", ""},
		{func(f *Facts) { f.Slot.Plugin = "wal2json" }, "wal2json", ""},
		{func(f *Facts) { f.Slot.Type = "physical" }, "physical", ""},
		{func(f *Facts) { f.Slot.Database = "other" }, "belongs to the database other", ""},
		{func(f *Facts) { f.Slot.TwoPhase = true }, "two_phase", ""},
		{func(f *Facts) { f.Slot.WALStatus = "lost" }, "max_slot_wal_keep_size was exceeded", ""},
		{func(f *Facts) { f.Slot.InvalidationReason = "idle_timeout" }, "invalidated (idle_timeout)", ""},
		{func(f *Facts) { f.Slot.Temporary = true }, "is temporary", ""},
		{func(f *Facts) { f.Slot.Temporary, f.Slot.Synced = true, true }, "not yet completely synchronized", ""},
		{func(f *Facts) { f.Publications[0].Exists = false }, `publication "p" does not exist`, ""},
		{func(f *Facts) { f.WALSenderTimeout = 2 * time.Second }, "", "wal_sender_timeout is 2s"},
		{func(f *Facts) { f.WALSenderTimeout = 0 }, "", "wal_sender_timeout is off"},
		{func(f *Facts) { f.MaxSlotWALKeep = -1 }, "", "unlimited"},
		{func(f *Facts) { f.MaxSlotWALKeep = 64 << 20 }, "", "only 64 MB"},
		{func(f *Facts) { f.IdleSlotTimeout = time.Hour }, "", "idle_replication_slot_timeout is 1h0m0s"},
		{func(f *Facts) { f.Slot.WALStatus = "unreserved" }, "", "about to be invalidated"},
		{func(f *Facts) { f.Slot.Failover, f.SynchronizedStandbySlots = true, "" }, "", "synchronized_standby_slots"},
		{func(f *Facts) { f.Standbys = 1 }, "", "does not survive a failover"},
		{func(f *Facts) { f.Publications[0].Tables = 0 }, "", "has no tables"},
		{func(f *Facts) { f.Publications[0].Deletes = false }, "", "leaves out delete"},
		{func(f *Facts) { f.WithoutIdentity = strings.Split(strings.Repeat("x ", 12)+"x", " ") }, "", "x and 3 more"},
	} {
		f := sound()
		c.change(&f)
		for _, k := range []struct {
			got  []Problem
			want string
		}{{Check(f), c.problem}, {Warnings(f), c.warning}} {
			if k.want == "" {
				if len(k.got) != 0 {
					t.Errorf("%q %q: got also %v", c.problem, c.warning, k.got)
				}
				continue
			}
			contains(t, k.got, k.want)
			for _, p := range k.got {
				if p.What == "" || p.Do == "" {
					t.Errorf("half a sentence: %+v", p)
				}
			}
		}
	}
}

func contains(t *testing.T, ps []Problem, wants ...string) {
	t.Helper()
	all := fmt.Sprint(ps)
	for _, w := range wants {
		if !strings.Contains(all, w) {
			t.Errorf("%q is not in %s", w, all)
		}
	}
}

func TestTypesAreReadWithWhatTheyAreMadeOf(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		execute(t, d.conn,
			"CREATE TYPE mood AS ENUM ('sad', 'happy')",
			"CREATE DOMAIN moods AS mood[]",
			"CREATE TYPE span AS RANGE (subtype = float8)",
			"CREATE TYPE inner_c AS (a mood, b numeric(10,2))",
			"CREATE TYPE outer_c AS (gone int, i inner_c, many inner_c[], s span, m span_multirange)",
			"ALTER TYPE outer_c DROP ATTRIBUTE gone",
			"CREATE DOMAIN outer_d AS outer_c",
			"CREATE FUNCTION mood_json(mood) RETURNS json LANGUAGE sql IMMUTABLE AS 'SELECT to_json($1::text)'",
			"CREATE CAST (mood AS json) WITH FUNCTION mood_json(mood)",
			"CREATE FUNCTION span_jsonb(span) RETURNS jsonb LANGUAGE sql IMMUTABLE AS 'SELECT to_jsonb($1::text)'",
			"CREATE CAST (span AS jsonb) WITH FUNCTION span_jsonb(span)",
			"CREATE EXTENSION hstore")
		oid := func(name string) uint32 { return ask[uint32](t, d.conn, "SELECT $1::text::regtype::oid", name) }
		list, err := d.admin.Types(t.Context(), []uint32{oid("outer_d"), oid("moods"), oid("hstore"), oid("int4"), oid("information_schema.sql_identifier"), oid("pg_class[]"), 999999999, oid("moods")})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]change.Type{}
		for i, ty := range list {
			if i > 0 && ty.OID <= list[i-1].OID {
				t.Errorf("type %d comes after type %d", ty.OID, list[i-1].OID)
			}
			if ty.OID != oid(`"`+ty.Namespace+`"."`+ty.Name+`"`) {
				t.Errorf("%s has another OID than %d", ty.Name, ty.OID)
			}
			ty.OID = 0
			got[ty.Name] = ty
		}
		col := func(name, typ string, mod int32) change.Column {
			return change.Column{Name: name, Type: oid(typ), Modifier: mod}
		}
		want := map[string]change.Type{
			"mood":            {Namespace: "public", Name: "mood", Kind: change.KindEnum, JSONCast: true},
			"_mood":           {Namespace: "public", Name: "_mood", Kind: change.KindArray, Base: oid("mood"), Delimiter: ','},
			"moods":           {Namespace: "public", Name: "moods", Kind: change.KindDomain, Base: oid("mood[]")},
			"span":            {Namespace: "public", Name: "span", Kind: change.KindRange, Base: oid("float8")},
			"span_multirange": {Namespace: "public", Name: "span_multirange", Kind: change.KindMultirange, Base: oid("span")},
			"inner_c":         {Namespace: "public", Name: "inner_c", Kind: change.KindComposite, Fields: []change.Column{col("a", "mood", -1), col("b", "numeric", 10<<16+2+4)}},
			"_inner_c":        {Namespace: "public", Name: "_inner_c", Kind: change.KindArray, Base: oid("inner_c"), Delimiter: ','},
			"outer_c": {Namespace: "public", Name: "outer_c", Kind: change.KindComposite, Fields: []change.Column{
				col("i", "inner_c", -1), col("many", "inner_c[]", -1), col("s", "span", -1), col("m", "span_multirange", -1)}},
			"outer_d":        {Namespace: "public", Name: "outer_d", Kind: change.KindDomain, Base: oid("outer_c")},
			"hstore":         {Namespace: "public", Name: "hstore", Kind: change.KindBase, JSONCast: true},
			"sql_identifier": {Namespace: "information_schema", Name: "sql_identifier", Kind: change.KindDomain, Base: oid("name")},
		}
		// A catalog's row type has its fields by version.
		if c := got["pg_class"]; c.Kind != change.KindComposite || len(c.Fields) < 20 || got["_pg_class"].Base != 83 {
			t.Errorf("pg_class: %+v, pg_class[]: %+v", c, got["_pg_class"])
		}
		for name := range got {
			if strings.HasSuffix(name, "pg_class") {
				delete(got, name)
			}
		}
		for name, w := range want {
			if !reflect.DeepEqual(got[name], w) {
				t.Errorf("%s:\n got  %+v\n want %+v", name, got[name], w)
			}
		}
		if len(got) != len(want) {
			t.Errorf("got %d types, want %d", len(got), len(want))
		}
		// What to_json makes of it is what the flag says.
		for typ, cast := range map[string]string{"mood": `happy`, "hstore": `a=>1`} {
			text := ask[string](t, d.conn, fmt.Sprintf("SELECT to_json('%s'::%s)::text", cast, typ))
			if typ == "hstore" && !strings.HasPrefix(text, "{") {
				t.Errorf("to_json does not follow the cast of %s: %s", typ, text)
			}
		}
		if none, err := d.admin.Types(t.Context(), []uint32{23, 25, 1007}); err != nil || none != nil {
			t.Errorf("built-in types: %v, %v", none, err)
		}
	})
}

func TestTableNamesAreReadAsInSQL(t *testing.T) {
	for in, want := range map[string][]string{
		"orders":              {"public", "orders"},
		"Sales.Orders":        {"sales", "orders"},
		`"Sales".Orders`:      {"Sales", "orders"},
		`sales."Or""ders.x"`:  {"sales", `Or"ders.x`},
		`""`:                  nil,
		``:                    nil,
		`a.`:                  nil,
		`.a`:                  nil,
		`a.b.c`:               nil,
		`"a`:                  nil,
		`"a"b`:                nil,
		`a; DROP TABLE b`:     nil,
		`a"b`:                 nil,
		`"a"."b"."c"`:         nil,
		`"a"".b"`:             {"public", `a".b`},
		`Über.Straße`:         {"Über", "straße"},
		"a.b\x00":             nil,
		`"semi;colon"."x"`:    {"semi;colon", "x"},
		`"trailing"."quote""`: nil,
	} {
		got, err := parseTable(in)
		if want == nil {
			if err == nil {
				t.Errorf("%q: got %q", in, got)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual([]string(got), want) {
			t.Errorf("%q: got %q, %v, want %q", in, got, err, want)
		}
	}
}

func TestErrorsOfTheServerAreTold(t *testing.T) {
	s := &Session{cfg: Config{Slot: "s", Publications: []string{"p"}}}
	pg := func(code, detail string) error {
		return fmt.Errorf("x: %w", &pgconn.PgError{Code: code, Message: "m", Detail: detail})
	}
	for _, c := range []struct {
		during    phase
		err       error
		want      error
		transient bool
	}{
		{starting, pg("55006", ""), ErrSlotInUse, true},
		{starting, pg("42704", ""), ErrSlotMissing, false},
		{streaming, pg("42704", ""), ErrPublicationMissing, false},
		{connecting, pg("42704", ""), nil, false},
		{starting, pg("55000", "This slot has been invalidated because it exceeded the maximum reserved size."), ErrSlotInvalidated, false},
		{starting, pg("55000", "something else"), nil, false},
		{streaming, pg("58P01", ""), ErrSlotInvalidated, false},
		{connecting, pg("57P03", ""), ErrServerShutdown, true},
		{streaming, pg("57P01", ""), ErrServerShutdown, true},
		{streaming, pg("57P02", ""), ErrServerShutdown, true},
		{connecting, pg("53300", ""), nil, true},
		{connecting, pg("28P01", ""), ErrDenied, true},
		{connecting, pg("28000", ""), ErrDenied, true},
		{connecting, pg("3D000", ""), nil, false},
		{connecting, pg("42501", ""), nil, false},
		{streaming, pg("XX000", ""), nil, true},
		{streaming, pg("53200", ""), nil, true},
		{streaming, errors.New("read: connection reset by peer"), nil, true},
		{streaming, ErrClosed, ErrClosed, false},
		{connecting, context.Canceled, nil, false},
		{connecting, context.DeadlineExceeded, nil, true},
	} {
		got := s.classify(c.during, c.err)
		if c.want != nil && !errors.Is(got, c.want) || !errors.Is(got, c.err) && c.want == nil {
			t.Errorf("%v during %d: got %v", c.err, c.during, got)
		}
		if Transient(got) != c.transient {
			t.Errorf("%v during %d: transient is %v", c.err, c.during, Transient(got))
		}
		var pg *pgconn.PgError
		if errors.As(c.err, &pg) && !strings.Contains(got.Error(), pg.Code) {
			t.Errorf("the SQLSTATE is not in %q", got)
		}
	}
	if Transient(nil) {
		t.Error("no error is transient")
	}
}
