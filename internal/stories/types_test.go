package stories

import "testing"

// Tables of types that Postgres announces in Type messages: their labels, names
// and rules change under the rows, and a value is the text that it had then.
func TestTypesThatChangeUnderTheRows(t *testing.T) {
	types := []string{
		"CREATE TYPE public.mood AS ENUM ('sad', 'fine')", "CREATE TYPE public.empty AS ENUM ()",
		"CREATE DOMAIN public.percent AS numeric(5, 2) CHECK (VALUE <= 100)",
		"CREATE TYPE public.place AS (x int, name text, mood public.mood)",
		"CREATE TABLE public.t (id int PRIMARY KEY, m public.mood, e public.empty, p public.percent, at public.place, moods public.mood[])",
	}
	tell(t, "FOR ALL TABLES", types, func(s *story) {
		s.started()
		s.insert("public.t", `VALUES (1, 'sad', NULL, 12.50, (1, 'a "b"', 'fine'), '{sad,fine}'), (2, NULL, NULL, NULL, NULL, '{}')`)
		s.exec("ALTER TYPE public.mood ADD VALUE 'happy' BEFORE 'fine'")
		s.joins()
		s.insert("public.t", "VALUES (3, 'happy', NULL, 0, (2, NULL, 'happy'), '{happy}')")
		s.exec("ALTER TYPE public.mood RENAME VALUE 'sad' TO 'blue'")
		s.joins()
		s.update("public.t", "p = 99", "id = 1")
		s.exec("ALTER TYPE public.mood RENAME TO humour", "ALTER DOMAIN public.percent DROP CONSTRAINT percent_check")
		s.joins()
		s.insert("public.t", "VALUES (4, 'blue', NULL, 101, (NULL, '', 'blue'), '{blue,happy}')")
		s.begin()
		s.exec("CREATE TYPE public.size AS ENUM ('s', 'm')", "ALTER TABLE public.t ADD COLUMN size public.size DEFAULT 'm'")
		s.insert("public.t", "VALUES (5, NULL, NULL, NULL, NULL, NULL, 's')")
		s.update("public.t", "m = 'happy'", "id = 4")
		s.commit()
		s.joins()
		s.exec("ALTER TABLE public.t ALTER COLUMN m TYPE text, ALTER COLUMN size TYPE text")
		s.update("public.t", "m = 'any', size = 'other'", "id = 5")
	})
}
