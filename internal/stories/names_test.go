package stories

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// names are what a schema, table or column can be called. The last two have 63
// bytes, as many as Postgres keeps.
var names = []string{
	"plain", "With Upper", "UPPER", "two words", " edges ", "a.b", ".", `say "x"`, `"`, `""`, "it's", `back\slash`, "#", "_", "_under", "100%", "%s", "%I",
	"semi;colon", "--", "/*", "$1", "$$", "1st", "tab\there", "line\nbreak", "select", "user", "ünïcode", "表", "🚇", "a,b", "(x)", "a/b", "null", "\u00e9", "e\u0301",
	strings.Repeat("n", 63), strings.Repeat("\"", 61) + "é",
}

func quote(parts ...string) string { return pgx.Identifier(parts).Sanitize() }

func TestNamesOfEverySortInData(t *testing.T) {
	tell(t, "FOR ALL TABLES", nil, func(s *story) {
		s.started()
		for i, name := range names {
			other := names[(i+7)%len(names)]
			s.exec("CREATE SCHEMA " + quote("s "+fmt.Sprint(i)+clip(name)))
			table := quote("s "+fmt.Sprint(i)+clip(name), other)
			s.exec(fmt.Sprintf("CREATE TABLE %s (%s int, %s text, PRIMARY KEY (%s, %s))", table, quote(name), quote(other), quote(other), quote(name)))
			s.insert(table, "VALUES (1, 'a')")
			s.update(table, quote(other)+" = 'b'", "true")
			if i%3 == 0 {
				s.truncate(table, ask[string](s, "SELECT $1::regclass::text", table))
			} else {
				s.remove(table, "true")
			}
		}
		// Schemas by their bare names too, which the role's are not called.
		for _, name := range names {
			schema := quote(name)
			s.exec("CREATE SCHEMA "+schema, "CREATE TABLE "+schema+".t (id int)")
			s.insert(schema+".t", "VALUES (1)")
		}
	})
}

// clip leaves room in a name of 63 bytes.
func clip(name string) string {
	if len(name) > 50 {
		return name[:50]
	}
	return name
}

// What the server prints bare on 15 is in quotes in the lake if 18 has made it a
// keyword, so that an upgrade renames no table: change.Relation.QualifiedName.
func TestTablesAreCalledTheSameOnEveryVersion(t *testing.T) {
	keywords := []string{"json_table", "merge_action", "json", "system_user"}
	for _, v := range versions {
		s := newStory(t, v)
		s.exec("CREATE PUBLICATION " + s.slot + " FOR ALL TABLES")
		s.started()
		for _, word := range keywords {
			s.exec("CREATE TABLE public."+quote(word)+" (id int)", "INSERT INTO public."+quote(word)+" VALUES (1)")
			s.expect("insert", "public."+quote(word), "", `{"id":1}`)
		}
		s.check()
	}
}

// The same names through the commands that make a publication, and through the
// option that names it.
func TestNamesOfEverySortInPublications(t *testing.T) {
	t.Parallel()
	for _, v := range versions {
		t.Run(fmt.Sprint("postgres", v), func(t *testing.T) {
			t.Parallel()
			s := newStory(t, v)
			var tables []string
			for i, name := range names {
				schema := quote(names[(i+3)%len(names)])
				s.exec("CREATE SCHEMA IF NOT EXISTS "+schema, "CREATE TABLE "+schema+"."+quote(name)+" (id int)")
				tables = append(tables, schema+"."+quote(name))
			}
			for i, publication := range names {
				want := replication.Published{Tables: []string{tables[i], tables[(i+1)%len(tables)]}}
				for _, made := range []bool{true, false} {
					if created, err := s.admin.CreatePublication(t.Context(), publication, want); err != nil || created != made {
						t.Fatalf("publication %q of %q: made %v, error %v", publication, want.Tables, created, err)
					}
				}
			}
			if n := ask[int](s, "SELECT count(DISTINCT (schemaname, tablename)) FROM pg_publication_tables"); n != len(names) {
				t.Errorf("%d tables are published, want %d", n, len(names))
			}
			admin, err := replication.NewAdmin(replication.Config{ConnString: s.url, Slot: s.slot, Publications: names}, quiet)
			if err != nil {
				t.Fatal(err)
			}
			facts, err := admin.Inspect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for i, p := range facts.Publications {
				if !p.Exists || p.Name != names[i] || p.Tables != 2 {
					t.Errorf("publication %q is seen as %+v", names[i], p)
				}
			}
			if len(facts.WithoutIdentity) != len(names) {
				t.Errorf("%d tables without an identity are named, want %d", len(facts.WithoutIdentity), len(names))
			}
			s.publications = names
			s.started()
			for _, table := range tables {
				s.insert(table, "VALUES (1)")
			}
			s.check()
			for _, publication := range names {
				if dropped, err := s.admin.DropPublication(t.Context(), publication); err != nil || !dropped {
					t.Errorf("drop publication %q: %v, %v", publication, dropped, err)
				}
			}
		})
	}
}
