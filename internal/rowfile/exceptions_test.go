package rowfile_test

import (
	"os"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/pgtest"
)

// exception is a value that is not what to_json gives. The table in
// docs/format.md has the same rows.
type exception struct {
	value, lake, reason string
	// test shows it on a real server.
	test func(*testing.T, *pgtest.Server)
}

var exceptions = []exception{
	{
		"of a type with a user-defined cast to json (hstore, PostGIS), and of arrays and domains of one",
		"its text, as a string",
		"to_json calls the function of the cast, which only the server can run",
		castToJSON,
	},
	{
		"text that is not valid UTF-8, which a SQL_ASCII database can hold",
		"`{\"tidemark_hex\":\"636166e9\"}`, the bytes of the text",
		"JSON and Parquet strings are UTF-8, and to_json gives what is not JSON",
		notUTF8,
	},
	{
		"json or jsonb that holds the letters `tidemark_hex`",
		"the same object, with the bytes of its text",
		"so that the object means the same wherever it stands",
		looksLikeHex,
	},
	{
		"a name of a table, column or field that is not valid UTF-8",
		"each byte that is no part of a valid sequence as `\\xHH`, in fields as U+FFFD",
		"as above",
		nameNotUTF8,
	},
	{
		"a composite with another number of fields than its type had when the table was last announced",
		"its text, as a string",
		"Postgres does not tell of ALTER TYPE in the stream; a table is announced at the start of each connection and after DDL on the table itself",
		alteredComposite,
	},
	{
		"a composite whose fields were renamed, or replaced by as many others, since the table was last announced or before",
		"an object with the names and types of that time; its text, as a string, where a value does not fit them",
		"as above",
		renamedField,
	},
	{
		"of a composite, array or domain type that was dropped before the table was announced",
		"its text, as a string",
		"what its parts are stood in the catalog only, and is read when the table is announced",
		droppedType,
	},
	{
		"a TOASTed value that an UPDATE did not change, in an update whose old image lacks it and whose key has no earlier image in the object",
		"absent from `after`, and named in `unchanged`",
		"Postgres does not send it",
		notSent,
	},
}

func castToJSON(t *testing.T, srv *pgtest.Server) {
	w := newWorld(t, srv, "casts", "", nil, nil)
	run(t, w.app, "CREATE EXTENSION hstore", "CREATE DOMAIN hd AS hstore", "CREATE TABLE c (h hstore, hs hstore[], d hd)",
		`INSERT INTO c VALUES ('a=>1', ARRAY['b=>"x y"'::hstore, NULL], 'c=>NULL')`)
	expectImages(t, w, `{"h":"\"a\"=>\"1\"","hs":["\"b\"=>\"x y\"",null],"d":"\"c\"=>NULL"}`)
	if got := w.toJSON(t, "c", "")[0]; got != `{"h":{"a": "1"},"hs":[{"b": "x y"},null],"d":{"c": null}}` {
		t.Errorf("to_json gives %s", got)
	}
}

func notUTF8(t *testing.T, srv *pgtest.Server) {
	w := newWorld(t, srv, "ascii", "ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0", nil, nil)
	run(t, w.app, "CREATE TYPE pair AS (a int, b text)", "CREATE TABLE s (v text, vs text[], j json, b jsonb, p pair)",
		`INSERT INTO s VALUES (E'caf\xe9', ARRAY['a', E'\xe9', 'é'], E'["\xe9"]', E'{"k": "\xe9"}', ROW(1, E'\xe9 '))`, `INSERT INTO s (v) VALUES ('café')`)
	expectImages(t, w, `{"v":{"tidemark_hex":"636166e9"},"vs":["a",{"tidemark_hex":"e9"},"é"],"j":{"tidemark_hex":"5b22e9225d"},"b":{"tidemark_hex":"7b226b223a2022e9227d"},"p":{"a":1,"b":{"tidemark_hex":"e920"}}}`,
		`{"v":"café","vs":null,"j":null,"b":null,"p":null}`)
}

func looksLikeHex(t *testing.T, srv *pgtest.Server) {
	w := newWorld(t, srv, "looks", "", nil, nil)
	run(t, w.app, "CREATE TABLE k (j json, b jsonb, v text)", `INSERT INTO k VALUES ('{"tidemark_hex":"ff"}', '"tidemark_hex"', '{"tidemark_hex":"ff"}')`)
	expectImages(t, w, `{"j":{"tidemark_hex":"7b22746964656d61726b5f686578223a226666227d"},"b":{"tidemark_hex":"22746964656d61726b5f68657822"},"v":"{\"tidemark_hex\":\"ff\"}"}`)
}

func nameNotUTF8(t *testing.T, srv *pgtest.Server) {
	w := newWorld(t, srv, "odd_names", "ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0", nil, nil)
	run(t, w.app, "CREATE TYPE y AS (\"z\xe9\" int)", "CREATE TABLE \"t\xe9\" (\"c\xe9é\" int, y y)", "INSERT INTO \"t\xe9\" VALUES (1, ROW(2))")
	got := decodeAll(t, w.stream(t), 10)
	if len(got) != 1 || got[0].table != `t\xe9` || got[0].after != `{"c\\xe9é":1,"y":{"z`+"\ufffd"+`":2}}` {
		t.Errorf("got %+v", got)
	}
}

// The facts are read with the first row, since stream is called only then.
func alteredComposite(t *testing.T, srv *pgtest.Server) {
	w := newWorld(t, srv, "altered", "", nil, nil)
	run(t, w.app, "CREATE TYPE c AS (a int, b text)", "CREATE TABLE x (id int PRIMARY KEY, c c, cs c[])",
		"INSERT INTO x VALUES (1, '(1,x)', '{\"(2,y)\"}')", "ALTER TYPE c ADD ATTRIBUTE d bool",
		"INSERT INTO x VALUES (2, '(1,x,t)', '{\"(2,y,f)\"}')")
	old, now := `{"id":1,"c":"(1,x)","cs":["(2,y)"]}`, w.toJSON(t, "x", "WHERE id = 2")[0]
	expectImages(t, w, old, now)
	// On the next connection the table is announced, and described, again; on the
	// same one it would not have been.
	run(t, w.app, "INSERT INTO x VALUES (3, '(1,x,t)', '{}')", "ALTER TYPE c DROP ATTRIBUTE a", "INSERT INTO x VALUES (4, '(x,t)', '{}')")
	expectImages(t, w, `{"id":3,"c":"(1,x,t)","cs":[]}`, w.toJSON(t, "x", "WHERE id = 4")[0])
	// What the documentation advises makes the server announce it.
	run(t, w.app, "INSERT INTO x VALUES (5)", "INSERT INTO x VALUES (6)", "ALTER TABLE x SET (fillfactor = 100)", "INSERT INTO x VALUES (7)")
	if got := w.stream(t); got[0].Relation != got[1].Relation || got[1].Relation == got[2].Relation {
		t.Errorf("the table is announced otherwise: %p %p %p", got[0].Relation, got[1].Relation, got[2].Relation)
	}
}

func renamedField(t *testing.T, srv *pgtest.Server) {
	w := newWorld(t, srv, "renamed", "", nil, nil)
	run(t, w.app, "CREATE TYPE c AS (a int, b text)", "CREATE TABLE x (id int PRIMARY KEY, c c)", "INSERT INTO x VALUES (1, '(1,x)')",
		"ALTER TYPE c RENAME ATTRIBUTE a TO z", "INSERT INTO x VALUES (2, '(1,x)')",
		"ALTER TYPE c DROP ATTRIBUTE b", "ALTER TYPE c ADD ATTRIBUTE j json", "INSERT INTO x VALUES (3, '(1,5)')")
	expectImages(t, w, `{"id":1,"c":"(1,x)"}`, `{"id":2,"c":"(1,x)"}`, `{"id":3,"c":{"z":1,"j":5}}`)
}

func droppedType(t *testing.T, srv *pgtest.Server) {
	w := newWorld(t, srv, "dropped", "", nil, nil)
	run(t, w.app, "CREATE TYPE c AS (a int, b text)", "CREATE DOMAIN d AS int", "CREATE TYPE m AS ENUM ('sad')", "CREATE TABLE x (c c, cs c[], d d, m m)",
		"INSERT INTO x VALUES ('(1,x)', '{\"(2,y)\"}', 1, 'sad')", "DROP TABLE x", "DROP TYPE c, d, m")
	expectImages(t, w, `{"c":"(1,x)","cs":"{\"(2,y)\"}","d":"1","m":"sad"}`)
}

func notSent(t *testing.T, srv *pgtest.Server) {
	w := newWorld(t, srv, "not_sent", "", nil, nil)
	run(t, w.app, "CREATE TABLE x (id int PRIMARY KEY, n int, v text)", "ALTER TABLE x ALTER v SET STORAGE EXTERNAL", "INSERT INTO x VALUES (1, 1, repeat('v', 3000))",
		"UPDATE x SET n = 2")
	changes := w.stream(t)
	if got := decodeAll(t, changes[1:], 10); got[0].after != `{"id":1,"n":2}` || strings.Join(got[0].unchanged, " ") != "v" {
		t.Errorf("got %+v", got)
	}
}

func TestTheExceptionsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/format.md")
	if err != nil {
		t.Fatal(err)
	}
	want := "| value | in the lake | why |\n|---|---|---|\n"
	for _, e := range exceptions {
		want += "| " + e.value + " | " + e.lake + " | " + e.reason + " |\n"
	}
	if !strings.Contains(string(text), want+"\n") {
		t.Errorf("docs/format.md does not have the table of exceptions as it is:\n%s", want)
	}
}
