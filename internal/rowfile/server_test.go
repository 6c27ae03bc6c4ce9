package rowfile_test

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/pgoutput"
	"github.com/tidemark-cdc/tidemark/internal/pgtest"
)

func TestValuesFromAServer(t *testing.T) {
	onServers(t, func(t *testing.T, srv *pgtest.Server) {
		t.Run("unchanged values", func(t *testing.T) { unchangedValues(t, srv) })
		t.Run("unchanged values of partitions", func(t *testing.T) { unchangedInPartitions(t, srv) })
		t.Run("names and labels are those of the time of the change", func(t *testing.T) { namesOfTheTime(t, srv) })
		t.Run("values of 200 MB", func(t *testing.T) { largeValues(t, srv) })
		for _, e := range exceptions {
			t.Run("exception: "+e.value, func(t *testing.T) { e.test(t, srv) })
		}
	})
}

// expectImages compares the after images, and what is unchanged in them, of all
// changes that came.
func expectImages(t *testing.T, w *world, want ...string) {
	t.Helper()
	got := decodeAll(t, w.stream(t), 1000)
	if len(got) != len(want) {
		t.Fatalf("%d changes, want %d", len(got), len(want))
	}
	for i, c := range got {
		if have := strings.TrimSpace(c.after + " " + strings.Join(c.unchanged, ",")); have != want[i] {
			t.Errorf("change %d is\n%.500s, want\n%.500s", i, have, want[i])
		}
	}
}

func unchangedValues(t *testing.T, srv *pgtest.Server) {
	w := newWorld(t, srv, "unchanged", "", nil, nil)
	big := func(c string) string { return strings.Repeat(c, 3000) }
	row := func(table string) string { return w.toJSON(t, table, "")[0] }
	var want []string
	do := func(table string, statements ...string) {
		run(t, w.app, statements...)
		want = append(want, row(table))
	}
	run(t, w.app, `CREATE TABLE a (id int PRIMARY KEY, n int, v text, w text)`, `ALTER TABLE a ALTER v SET STORAGE EXTERNAL, ALTER w SET STORAGE EXTERNAL`)
	do("a", "INSERT INTO a VALUES (1, 1, repeat('v', 3000), repeat('w', 3000))")
	do("a", "UPDATE a SET n = 2")
	do("a", "UPDATE a SET id = 2")
	do("a", "UPDATE a SET v = repeat('V', 3000), n = 3")
	do("a", "UPDATE a SET n = 4, id = 1")
	// Rewritten with no column changed: no image from before is of use.
	run(t, w.app, "ALTER TABLE a ALTER v TYPE text USING lower(v), ALTER v SET STORAGE EXTERNAL")
	run(t, w.app, "UPDATE a SET n = 5")
	want = append(want, `{"id":1,"n":5} v,w`)
	do("a", "UPDATE a SET v = repeat('x', 3000), w = repeat('y', 3000)")
	run(t, w.app, "UPDATE a SET n = 6")
	want = append(want, `{"id":1,"n":6} v,w`) // no insert was seen since
	run(t, w.app, "TRUNCATE a")
	want = append(want, "")
	// The old image has it.
	run(t, w.app, `CREATE TABLE f (id int, v text)`, `ALTER TABLE f ALTER v SET STORAGE EXTERNAL`, "ALTER TABLE f REPLICA IDENTITY FULL")
	do("f", "INSERT INTO f VALUES (1, repeat('v', 3000))")
	do("f", "UPDATE f SET id = 2")
	// An identity by index, whose key is TOASTed too.
	run(t, w.app, `CREATE TABLE i (id int NOT NULL, k text NOT NULL, v text)`, `CREATE UNIQUE INDEX i_k ON i (k)`,
		`ALTER TABLE i REPLICA IDENTITY USING INDEX i_k`, `ALTER TABLE i ALTER k SET STORAGE EXTERNAL, ALTER v SET STORAGE EXTERNAL`)
	do("i", "INSERT INTO i VALUES (1, repeat('k', 2200), repeat('v', 3000))")
	do("i", "UPDATE i SET id = 2")
	do("i", "UPDATE i SET id = 3, v = repeat('V', 3000)")
	do("i", "UPDATE i SET id = 4")
	expectImages(t, w, want...)
	if !strings.Contains(want[4], big("V")) || !strings.Contains(want[4], big("w")) {
		t.Errorf("the rows are not what they were meant to be: %.200s", want[4])
	}
}

// Rows change beside the stream in every way that Postgres allows; no value from
// before may stand for one after.
func unchangedInPartitions(t *testing.T, srv *pgtest.Server) {
	w := newWorld(t, srv, "partitions", "", nil, nil)
	run(t, w.app, "ALTER PUBLICATION partitions SET (publish_via_partition_root)",
		"CREATE TABLE p (id int PRIMARY KEY, n int, v text) PARTITION BY RANGE (id)", "ALTER TABLE p ALTER v SET STORAGE EXTERNAL",
		"CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100)", "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (200)")
	var want []string
	n := 1
	touch := func() { // updates all rows but for their large value
		n++
		run(t, w.app, fmt.Sprintf("UPDATE p SET n = %d WHERE id = 1", n), fmt.Sprintf("UPDATE p SET n = %d WHERE id = 101", n), fmt.Sprintf("UPDATE p SET n = %d WHERE id = 102", n))
		want = append(want, w.toJSON(t, "p", "ORDER BY id")...)
	}
	run(t, w.app, "INSERT INTO p VALUES (1, 1, repeat('v', 3000))", "INSERT INTO p VALUES (101, 1, repeat('w', 3000))")
	want = w.toJSON(t, "p", "ORDER BY id")
	touch()
	run(t, w.app, "ALTER TABLE p ALTER v TYPE text USING upper(v), ALTER v SET STORAGE EXTERNAL")
	touch()
	run(t, w.app, "UPDATE p SET id = 102 WHERE id = 1")
	want = append(want, "", w.toJSON(t, "p", "WHERE id = 102")[0])
	touch()
	run(t, w.app, "ALTER PUBLICATION partitions SET (publish = 'truncate')", "UPDATE p SET v = repeat('x', 3000)",
		"ALTER PUBLICATION partitions SET (publish = 'insert, update, delete, truncate')")
	touch()
	run(t, w.app, "ALTER TABLE p DETACH PARTITION p2", "UPDATE p2 SET v = repeat('y', 3000) WHERE id = 101")
	want = append(want, w.toJSON(t, "p2", "WHERE id = 101")[0])
	run(t, w.app, "ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (100) TO (200)")
	touch()
	changes := w.stream(t)
	if len(changes) != len(want) {
		t.Fatalf("%d changes, want %d", len(changes), len(want))
	}
	supplied := 0
	for i, c := range decodeAll(t, changes, 1000) {
		if len(c.unchanged) == 0 && c.op == change.Update {
			supplied++
		}
		if len(c.unchanged) > 0 {
			want[i] = without(t, want[i], c.unchanged)
		}
		if c.after != want[i] {
			t.Errorf("change %d is\n%.100s, want\n%.100s", i, c.after, want[i])
		}
	}
	if supplied == 0 {
		t.Error("no value was supplied by another change")
	}
}

func namesOfTheTime(t *testing.T, srv *pgtest.Server) {
	w := newWorld(t, srv, "names", "", nil, nil)
	run(t, w.app, `CREATE TYPE mood AS ENUM ('sad')`, `CREATE TYPE empty AS ENUM ()`, `CREATE TABLE before (id int)`, `CREATE TABLE n (m mood, r regclass, e empty, ms mood[])`,
		`INSERT INTO n VALUES ('sad', 'before', NULL, '{sad}')`,
		`ALTER TYPE mood ADD VALUE 'glad, "very"'`, `INSERT INTO n VALUES ('glad, "very"', NULL, NULL, ARRAY['glad, "very"', 'sad']::mood[])`,
		`ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'`, `ALTER TABLE before RENAME TO after`, `INSERT INTO n VALUES ('blue', 'after', NULL, '{blue}')`)
	expectImages(t, w, `{"m":"sad","r":"public.before","e":null,"ms":["sad"]}`, `{"m":"glad, \"very\"","r":null,"e":null,"ms":["glad, \"very\"","sad"]}`, `{"m":"blue","r":"public.after","e":null,"ms":["blue"]}`)
}

// On one server it is a text, on the other a jsonb, which takes half the time.
func largeValues(t *testing.T, srv *pgtest.Server) {
	w := newWorld(t, srv, "large", "", nil, nil)
	const size = 200 << 20
	typ, value := "text", fmt.Sprintf(`repeat('say "x" ', %d)`, size/8)
	if srv.Version() == 18 {
		typ, value = "jsonb", "to_jsonb("+value+")"
	}
	run(t, w.app, "CREATE TABLE l (v "+typ+")", "ALTER TABLE l ALTER v SET STORAGE EXTERNAL", "INSERT INTO l VALUES ("+value+")")
	want := run(t, w.oracle, "SELECT md5(to_json(x)::text) FROM public.l x")[0]
	changes := w.stream(t)
	row, err := pgoutput.NewDecoder().Decode(&changes[0])
	if err != nil {
		t.Fatal(err)
	}
	after, err := row.AppendAfter(make([]byte, 0, 2*size))
	if err != nil {
		t.Fatal(err)
	}
	sum := md5.Sum(after)
	if got := hex.EncodeToString(sum[:]); got != want || len(after) < size {
		t.Errorf("%d bytes with sum %s, want %s", len(after), got, want)
	}
}
