package stories

import "testing"

func TestRowFilters(t *testing.T) {
	tables := []string{"CREATE TABLE public.t (id int PRIMARY KEY, v text)", "CREATE TABLE public.f (id int PRIMARY KEY, v text)",
		"ALTER TABLE public.f REPLICA IDENTITY FULL"}
	tell(t, "FOR TABLE public.t WHERE (id > 10), public.f WHERE (v IS NULL OR v <> 'hidden')", tables, func(s *story) {
		s.started()
		s.exec("INSERT INTO public.t VALUES (1, 'out')")
		s.insert("public.t", "VALUES (11, 'in')")
		s.update("public.t", "v = 'still in'", "id = 11")
		s.exec("UPDATE public.t SET v = 'still out' WHERE id = 1")
		// Into the filter it is an insert, out of it a delete.
		s.exec("UPDATE public.t SET id = 12 WHERE id = 1")
		s.expect("insert", "public.t", "", ask[string](s, "SELECT to_json(t)::text FROM public.t WHERE id = 12"))
		s.exec("UPDATE public.t SET id = 2 WHERE id = 11")
		s.expect("delete", "public.t", `{"id":11}`, "")
		s.exec("DELETE FROM public.t WHERE id = 2")
		s.remove("public.t", "id = 12")

		s.insert("public.f", "VALUES (1, NULL)")
		old := ask[string](s, "SELECT to_json(f)::text FROM public.f")
		s.exec("UPDATE public.f SET v = 'hidden'")
		s.expect("delete", "public.f", old, "")
		s.exec("UPDATE public.f SET v = 'shown'")
		s.expect("insert", "public.f", "", ask[string](s, "SELECT to_json(f)::text FROM public.f"))
		s.truncate("public.f", "public.f")
	})
}

func TestColumnLists(t *testing.T) {
	tables := []string{"CREATE TABLE public.t (secret text, id int PRIMARY KEY, a text, b text, c text)",
		"CREATE TABLE public.whole (id int, v text)", "ALTER TABLE public.whole REPLICA IDENTITY FULL"}
	tell(t, "FOR TABLE public.t (id, c, a), public.whole", tables, func(s *story) {
		s.only["public.t"] = []string{"id", "a", "c"}
		s.started()
		s.insert("public.t", "VALUES ('secret', 1, 'a', 'b', 'c')")
		s.update("public.t", "secret = 'unseen'", "id = 1") // an update all the same
		s.update("public.t", "id = 2, a = NULL", "id = 1")
		s.exec("ALTER TABLE public.t DROP COLUMN b", "ALTER TABLE public.t ADD COLUMN d text")
		s.update("public.t", "c = 'cc', d = 'unseen'", "id = 2")
		s.exec("ALTER TABLE public.t RENAME COLUMN a TO z")
		s.only["public.t"] = []string{"id", "z", "c"}
		s.update("public.t", "z = 'zz'", "id = 2")
		s.remove("public.t", "true")
		s.insert("public.whole", "VALUES (1, 'x')")
		s.update("public.whole", "v = 'y'", "true")
	})
}

func TestGeneratedColumns(t *testing.T) {
	table := []string{"CREATE TABLE public.t (id int PRIMARY KEY, a int, double int GENERATED ALWAYS AS (a * 2) STORED, note text)"}
	generated := func(publishes bool) func(s *story) {
		return func(s *story) {
			if !publishes {
				s.only["public.t"] = []string{"id", "a", "note"}
			}
			s.started()
			s.insert("public.t", "(id, a) VALUES (1, 1), (2, NULL)")
			s.update("public.t", "a = 5", "id = 1")
			if s.version < 18 {
				s.exec("ALTER TABLE public.t REPLICA IDENTITY FULL")
				s.update("public.t", "a = 6", "id = 1")
			}
			s.remove("public.t", "true")
		}
	}
	t.Run("are left out", func(t *testing.T) { tell(t, "FOR ALL TABLES", table, generated(false)) })
	only18 := func(t *testing.T, publication string, before []string, told func(s *story)) {
		t.Parallel()
		s := newStory(t, 18)
		s.exec(before...)
		s.exec("CREATE PUBLICATION " + s.slot + " " + publication)
		told(s)
		s.check()
	}
	t.Run("are published by a setting of 18", func(t *testing.T) {
		only18(t, "FOR ALL TABLES WITH (publish_generated_columns = stored)", table, generated(true))
	})
	t.Run("are published by a column list in 18", func(t *testing.T) {
		only18(t, "FOR TABLE public.t (id, double)", table, func(s *story) {
			s.only["public.t"] = []string{"id", "double"}
			s.started()
			s.insert("public.t", "(id, a) VALUES (1, 1), (2, NULL)")
			s.update("public.t", "a = 5", "id = 1")
		})
	})
	t.Run("never when they are virtual", func(t *testing.T) {
		virtual := []string{"CREATE TABLE public.t (id int PRIMARY KEY, a int, double int GENERATED ALWAYS AS (a * 2) VIRTUAL)"}
		only18(t, "FOR ALL TABLES WITH (publish_generated_columns = stored)", virtual, func(s *story) {
			s.only["public.t"] = []string{"id", "a"}
			s.started()
			s.insert("public.t", "(id, a) VALUES (1, 1)")
			s.update("public.t", "a = 5", "id = 1")
		})
	})
}

// partitions are a partitioned table with one leaf like it, one with its
// columns in another order and a dropped one between, and one below another.
var partitions = []string{
	"CREATE TABLE public.root (id int, at date, v text, n numeric, PRIMARY KEY (id, at)) PARTITION BY RANGE (at)",
	"CREATE TABLE public.y2023 PARTITION OF public.root FOR VALUES FROM ('2023-01-01') TO ('2024-01-01')",
	"CREATE TABLE public.y2024 PARTITION OF public.root FOR VALUES FROM ('2024-01-01') TO ('2025-01-01') PARTITION BY LIST (id)",
	"CREATE TABLE public.y2024_1 PARTITION OF public.y2024 FOR VALUES IN (1)",
	"CREATE TABLE public.y2024_rest PARTITION OF public.y2024 DEFAULT",
}

func partitioned(viaRoot bool) func(s *story) {
	return func(s *story) {
		s.viaRoot = viaRoot
		s.started()
		s.insert("public.root", "VALUES (1, '2023-05-05', 'a', 1.0), (1, '2024-05-05', 'b', 2.00), (2, '2024-05-05', NULL, NULL)")
		s.update("public.root", "v = 'x'", "at = '2023-05-05'")
		s.exec("CREATE TABLE public.later (n numeric, gone text, v text, at date NOT NULL, id int NOT NULL, PRIMARY KEY (id, at))",
			"ALTER TABLE public.later DROP COLUMN gone")
		if !viaRoot {
			s.insert("public.later", "VALUES (0, 'before it was attached', '2025-02-02', 9)")
		}
		s.exec("ALTER TABLE public.root ATTACH PARTITION public.later FOR VALUES FROM ('2025-01-01') TO ('2026-01-01')")
		s.joins()
		s.insert("public.root", "VALUES (1, '2025-05-05', 'c', 3)")
		s.insert("public.later", "VALUES (4, 'd', '2025-06-06', 2)")
		s.update("public.root", "n = 7, id = 5", "id = 2 AND at = '2025-06-06'")
		s.remove("public.root", "id = 5")
		// From one partition to another: from the first leaf to the one with
		// another order, and within 2024.
		s.update("public.root", "at = '2025-12-31', v = 'moved'", "at = '2023-05-05'")
		s.update("public.root", "id = 7", "id = 1 AND at = '2024-05-05'")
		s.exec("ALTER TABLE public.root ADD COLUMN more text DEFAULT 'more'")
		s.joins()
		s.insert("public.root", "VALUES (8, '2023-08-08', 'e', 5, 'm')")
		s.update("public.root", "more = 'changed'", "id = 1 AND at = '2025-12-31'")
		s.begin()
		s.insert("public.root", "VALUES (9, '2025-09-09', 'f', 6, NULL)")
		s.exec("ALTER TABLE public.root DROP COLUMN v")
		s.insert("public.root", "VALUES (10, '2025-10-10', 7, NULL)")
		s.commit()
		if viaRoot {
			s.exec("TRUNCATE public.y2023")
			s.truncate("public.root", "public.root")
		} else {
			s.truncate("public.y2023", "public.y2023")
			s.truncate("public.root", "public.y2023", "public.later", "public.y2024_1", "public.y2024_rest")
		}
		s.exec("ALTER TABLE public.root DETACH PARTITION public.later")
		if viaRoot {
			s.exec("INSERT INTO public.later VALUES (1, '2025-01-01', 1)") // no longer the publication's
		} else {
			s.insert("public.later", "VALUES (1, '2025-01-01', 1)")
		}
		s.insert("public.root", "VALUES (1, '2024-01-01', 2, 'end')")
	}
}

func TestPartitionsUnderTheirOwnNames(t *testing.T) {
	tell(t, "FOR ALL TABLES", partitions, partitioned(false))
}

func TestPartitionsUnderTheNameOfTheirRoot(t *testing.T) {
	tell(t, "FOR TABLE public.root WITH (publish_via_partition_root)", partitions, partitioned(true))
}

func TestASchemaAndAllTablesViaTheRoot(t *testing.T) {
	for name, publication := range map[string]string{"all tables": "FOR ALL TABLES", "a schema": "FOR TABLES IN SCHEMA public"} {
		t.Run(name, func(t *testing.T) {
			tell(t, publication+" WITH (publish_via_partition_root)", partitions, func(s *story) {
				s.viaRoot = true
				s.started()
				s.insert("public.root", "VALUES (1, '2023-05-05', 'a', 1.0), (1, '2024-05-05', 'b', 2.00)")
				s.exec("CREATE TABLE public.fresh (id int PRIMARY KEY)", "CREATE TABLE public.y2025 PARTITION OF public.root FOR VALUES FROM ('2025-01-01') TO ('2026-01-01')")
				s.joins()
				s.insert("public.fresh", "VALUES (1)")
				s.insert("public.y2025", "VALUES (1, '2025-05-05', 'c', 3)")
				s.update("public.root", "at = '2025-06-06'", "at = '2023-05-05'")
				// Detached, it is a table of its own.
				s.exec("ALTER TABLE public.root DETACH PARTITION public.y2025")
				s.joins()
				s.insert("public.y2025", "VALUES (2, '2025-07-07', 'd', 4)")
				s.insert("public.root", "VALUES (3, '2024-07-07', 'e', 5)")
			})
		})
	}
}
