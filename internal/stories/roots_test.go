package stories

import "testing"

const viaRoot = "FOR TABLE public.root WITH (publish_via_partition_root)"

// What is altered of a root alone does not concern its partitions, and Postgres
// announces nothing again to a session that knows them. One that joins later
// hears the new name, and has to find the same rows: their digest is the same.
func TestARootThatIsRenamedKeepsItsNameForThoseWhoKnowIt(t *testing.T) {
	tell(t, viaRoot, partitions, func(s *story) {
		s.started()
		s.exec("INSERT INTO public.root VALUES (1, '2023-05-05', 'a', 1.0)", "ALTER TABLE public.root RENAME TO stem")
		s.joins()
		s.exec("INSERT INTO public.stem VALUES (2, '2023-05-05', 'b', 2.0)")
		s.expect("insert", "public.root", "", `{"id":1,"at":"2023-05-05","v":"a","n":1.0}`)
		s.expect("insert", "public.root", "", `{"id":2,"at":"2023-05-05","v":"b","n":2.0}`)
	})
}

// Before 16, the same holds for the tables of a schema that is renamed.
func TestASchemaThatIsRenamed(t *testing.T) {
	tell(t, "FOR ALL TABLES", []string{"CREATE SCHEMA s", "CREATE TABLE s.t (id int)"}, func(s *story) {
		s.started()
		s.exec("INSERT INTO s.t VALUES (1)", "ALTER SCHEMA s RENAME TO s2")
		s.joins()
		s.exec("INSERT INTO s2.t VALUES (2)")
		s.expect("insert", "s.t", "", `{"id":1}`)
		if s.version < 16 {
			s.expect("insert", "s.t", "", `{"id":2}`)
		} else {
			s.expect("insert", "s2.t", "", `{"id":2}`)
		}
	})
}

// A change of the publication in the same transaction makes it known.
func TestARootThatIsRenamedWithItsPublication(t *testing.T) {
	tell(t, viaRoot, partitions, func(s *story) {
		s.viaRoot = true
		s.started()
		s.insert("public.root", "VALUES (1, '2023-05-05', 'a', 1.0)")
		s.begin()
		s.exec("ALTER TABLE public.root RENAME TO stem", "ALTER PUBLICATION "+s.slot+" SET (publish_via_partition_root)")
		s.commit()
		s.joins()
		s.insert("public.stem", "VALUES (2, '2023-05-05', 'b', 2.0)")
	})
}

// The old image is what the leaf's replica identity puts into the WAL, and the
// root's says whether it is called a key or a whole row.
func TestARootWhoseIdentityIsNotThatOfItsPartitions(t *testing.T) {
	t.Run("the partitions have more", func(t *testing.T) {
		tell(t, viaRoot, partitions, func(s *story) {
			s.exec("ALTER TABLE public.y2023 REPLICA IDENTITY FULL")
			s.started()
			s.exec("INSERT INTO public.root VALUES (1, '2023-05-05', 'a', NULL)", "UPDATE public.root SET v = 'b'", "DELETE FROM public.root")
			s.expect("insert", "public.root", "", `{"id":1,"at":"2023-05-05","v":"a","n":null}`)
			s.expect("update", "public.root", `{"id":1,"at":"2023-05-05"}`, `{"id":1,"at":"2023-05-05","v":"b","n":null}`)
			s.expect("delete", "public.root", `{"id":1,"at":"2023-05-05"}`, "")
		})
	})
	t.Run("the root has more", func(t *testing.T) {
		tell(t, viaRoot, partitions, func(s *story) {
			s.exec("ALTER TABLE public.root REPLICA IDENTITY FULL")
			s.started()
			s.exec("INSERT INTO public.root VALUES (1, '2023-05-05', 'a', 1)", "UPDATE public.root SET v = 'b'", "DELETE FROM public.root")
			s.expect("insert", "public.root", "", `{"id":1,"at":"2023-05-05","v":"a","n":1}`)
			s.expect("update", "public.root", "", `{"id":1,"at":"2023-05-05","v":"b","n":1}`)
			// Postgres says that this is the whole row, and it is not: docs/operations.md.
			s.expect("delete", "public.root", `{"id":1,"at":"2023-05-05","v":null,"n":null}`, "")
		})
	})
	t.Run("the root has less than before", func(t *testing.T) {
		tell(t, viaRoot, append(partitions[:len(partitions):len(partitions)], "ALTER TABLE public.root REPLICA IDENTITY FULL"), func(s *story) {
			s.started()
			s.exec("INSERT INTO public.root VALUES (1, '2023-05-05', 'a', 1)", "ALTER TABLE public.root REPLICA IDENTITY DEFAULT")
			s.joins()
			s.exec("DELETE FROM public.root")
			s.expect("insert", "public.root", "", `{"id":1,"at":"2023-05-05","v":"a","n":1}`)
			s.expect("delete", "public.root", `{"id":1,"at":"2023-05-05"}`, "")
		})
	})
}
