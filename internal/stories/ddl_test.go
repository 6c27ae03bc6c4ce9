package stories

import (
	"fmt"
	"strings"
	"testing"
)

// alterations are done to public.t between rows; each is followed by the rows
// of a round.
var alterations = []string{
	"ALTER TABLE public.t ADD COLUMN added text DEFAULT 'by default'",
	"ALTER TABLE public.t ADD COLUMN \"another One\" numeric(10, 2)",
	"ALTER TABLE public.t RENAME COLUMN v TO w",
	"ALTER TABLE public.t ALTER COLUMN n TYPE text USING 'n is ' || n",
	"ALTER TABLE public.t ALTER COLUMN n TYPE varchar(20)",
	"ALTER TABLE public.t DROP COLUMN w",
	"ALTER TABLE public.t ADD COLUMN w int",
	"ALTER TABLE public.t ALTER COLUMN w TYPE bigint, ALTER COLUMN added DROP DEFAULT",
	"ALTER TABLE public.t REPLICA IDENTITY FULL",
	"ALTER TABLE public.t DROP COLUMN n, ADD COLUMN n timestamptz DEFAULT '2024-02-29 12:00+02'",
	"ALTER TABLE public.t REPLICA IDENTITY DEFAULT",
	"ALTER TABLE public.t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (id2)",
	"CREATE UNIQUE INDEX t_both ON public.t (id, id2); ALTER TABLE public.t REPLICA IDENTITY USING INDEX t_both",
	"VACUUM FULL public.t",
	"ALTER TABLE public.t RENAME CONSTRAINT t_pkey TO p",
}

// round changes public.t in every way; the rows of earlier rounds stay.
func (s *story) round(i int) {
	s.Helper()
	s.insert("public.t", fmt.Sprintf("(id, id2) VALUES (%d, %d), (%d, %d)", 2*i, 2*i, 2*i+1, 2*i+1))
	s.update("public.t", "id = -id, id2 = -id2", fmt.Sprint("id2 = ", 2*i+1))
	if i > 0 {
		s.update("public.t", "id2 = id2 + 1000", fmt.Sprint("id2 = ", 2*i-2))
		s.remove("public.t", fmt.Sprint("id2 = ", 998+2*i))
	}
}

const alteredTable = "CREATE TABLE public.t (id int NOT NULL, id2 int NOT NULL, v text DEFAULT 'v', n int DEFAULT 7, PRIMARY KEY (id))"

func TestEachRowIsDecodedWithTheTableAsItWas(t *testing.T) {
	tell(t, "FOR ALL TABLES", nil, func(s *story) {
		s.exec(alteredTable)
		s.started()
		s.round(0)
		for i, alter := range alterations {
			s.exec(alter)
			s.joins()
			s.round(i + 1)
		}
	})
}

func TestTheSameWithinOneTransaction(t *testing.T) {
	tell(t, "FOR ALL TABLES", nil, func(s *story) {
		s.exec(alteredTable)
		s.started()
		s.begin()
		s.round(0)
		for i, alter := range alterations {
			if alter != "VACUUM FULL public.t" { // not in a transaction
				s.exec(alter)
			}
			s.round(i + 1)
		}
		s.commit()
	})
}

func TestAlterationsThatAreRolledBackAreForgotten(t *testing.T) {
	tell(t, "FOR ALL TABLES", nil, func(s *story) {
		s.exec(alteredTable)
		s.started()
		for i, alter := range alterations {
			if !strings.HasPrefix(alter, "ALTER") || strings.Contains(alter, "w") || strings.Contains(alter, "CONSTRAINT") {
				continue
			}
			s.begin()
			s.exec("SAVEPOINT a", alter)
			kept := len(s.open)
			s.insert("public.t", fmt.Sprintf("(id, id2) VALUES (%d, %d)", 500+i, 500+i))
			s.exec("ROLLBACK TO a")
			s.open = s.open[:kept]
			s.insert("public.t", fmt.Sprintf("VALUES (%d, %d, 'kept', 1)", 600+i, i))
			s.commit()
			s.begin()
			s.exec(alter)
			s.insert("public.t", fmt.Sprintf("(id, id2) VALUES (%d, %d)", 700+i, i))
			s.rollback()
			s.insert("public.t", fmt.Sprintf("VALUES (%d, %d, 'kept', 1)", 800+i, i))
		}
	})
}

// A table that is altered while another transaction's rows of it wait for their
// commit: Postgres makes the two wait for each other, except for what takes a
// weaker lock.
func TestAnAlterationDuringAnotherTransaction(t *testing.T) {
	tell(t, "FOR ALL TABLES", nil, func(s *story) {
		s.exec("CREATE TABLE public.t (id int PRIMARY KEY, v text)", "CREATE TABLE public.u (id int PRIMARY KEY, v text)")
		s.started()
		other := *s
		other.db, other.told = s.connect(s.url), nil
		other.begin()
		other.insert("public.u", "VALUES (1, 'before')")
		s.begin()
		s.exec("ALTER TABLE public.t ADD COLUMN w int DEFAULT 3")
		s.insert("public.t", "VALUES (1, 'a', 2)")
		s.commit()
		other.insert("public.t", "VALUES (2, 'b')")
		s.exec("ALTER TABLE public.t SET (fillfactor = 50)")
		s.insert("public.t", "VALUES (3, 'c')")
		other.exec("ALTER TABLE public.u DROP COLUMN v")
		other.insert("public.u", "VALUES (2)")
		other.commit()
		s.told = append(s.told, other.told...)
		s.insert("public.u", "VALUES (3)")
	})
}

func TestRenamedDroppedAndRecreatedTables(t *testing.T) {
	tell(t, "FOR ALL TABLES", nil, func(s *story) {
		s.exec("CREATE TABLE public.t (id int PRIMARY KEY, v text)", "CREATE SCHEMA s")
		s.started()
		s.insert("public.t", "VALUES (1, 'first')")
		s.exec("ALTER TABLE public.t RENAME TO t_old")
		s.joins()
		s.insert("public.t_old", "VALUES (2, 'renamed')")
		s.exec("ALTER TABLE public.t_old SET SCHEMA s")
		s.update("s.t_old", "v = 'moved'", "id = 2")
		s.exec("CREATE TABLE public.t (v bool, id numeric PRIMARY KEY)")
		s.insert("public.t", "VALUES (true, 1.0)")
		s.remove("s.t_old", "id = 1")
		// Before 16, Postgres does not take a schema's new name for a reason to
		// announce its tables again; a change of the publication is one.
		s.begin()
		s.exec("ALTER SCHEMA s RENAME TO s2", "ALTER PUBLICATION "+s.slot+" SET (publish = 'insert, update, delete, truncate')")
		s.commit()
		s.joins()
		s.remove("s2.t_old", "true")

		s.exec("DROP TABLE public.t", "CREATE TABLE public.t (id int PRIMARY KEY, v text)")
		s.insert("public.t", "VALUES (1, 'second')")
		s.exec("DROP TABLE public.t", "CREATE TABLE public.t (id int PRIMARY KEY, v text)")
		s.insert("public.t", "VALUES (1, 'third, which looks the same')")

		// Two tables change their names, then all of it in one transaction.
		s.exec("CREATE TABLE public.a (id int PRIMARY KEY)", "CREATE TABLE public.b (x text)")
		s.insert("public.a", "VALUES (1)")
		s.insert("public.b", "VALUES ('x')")
		s.exec("ALTER TABLE public.a RENAME TO tmp", "ALTER TABLE public.b RENAME TO a", "ALTER TABLE public.tmp RENAME TO b")
		s.joins()
		s.insert("public.a", "VALUES ('y')")
		s.insert("public.b", "VALUES (2)")
		s.begin()
		s.insert("public.t", "VALUES (2, 'soon gone')")
		s.exec("DROP TABLE public.t", "CREATE TABLE public.t (v int, w int)")
		s.insert("public.t", "VALUES (1, 2)")
		s.exec("ALTER TABLE public.a RENAME TO tmp", "ALTER TABLE public.b RENAME TO a", "ALTER TABLE public.tmp RENAME TO b")
		s.insert("public.a", "VALUES (3)")
		s.insert("public.b", "VALUES ('z')")
		s.exec("DROP TABLE public.t")
		s.commit()
	})
}

func TestAPublicationThatChanges(t *testing.T) {
	tables := []string{"CREATE TABLE public.t (id int PRIMARY KEY, v text)", "CREATE TABLE public.u (id int PRIMARY KEY, v text, w int)"}
	tell(t, "FOR TABLE public.t", tables, func(s *story) {
		s.started()
		s.insert("public.t", "VALUES (1, 'a')")
		s.exec("INSERT INTO public.u VALUES (1, 'not yet', 1)")
		s.exec("ALTER PUBLICATION " + s.slot + " ADD TABLE public.u (id, w)")
		s.only["public.u"] = []string{"id", "w"}
		s.joins()
		s.insert("public.u", "VALUES (2, 'column list', 2)")
		s.exec("ALTER PUBLICATION " + s.slot + " SET TABLE public.u, public.t (id)")
		s.only = map[string][]string{"public.t": {"id"}}
		s.joins()
		s.insert("public.u", "VALUES (3, 'whole', 3)")
		s.update("public.t", "id = 2", "id = 1")
		s.exec("ALTER PUBLICATION "+s.slot+" DROP TABLE public.t", "INSERT INTO public.t VALUES (3, 'unseen')")
		// Gone and made again under the same name, it is another table.
		s.exec("DROP TABLE public.u", "CREATE TABLE public.u (id int PRIMARY KEY)", "INSERT INTO public.u VALUES (1)")
		s.exec("ALTER PUBLICATION " + s.slot + " ADD TABLE public.u")
		s.joins()
		s.insert("public.u", "VALUES (2)")
	})
}
