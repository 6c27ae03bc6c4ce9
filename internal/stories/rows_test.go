package stories

import "testing"

func TestEveryChangeOfARowUnderEveryIdentity(t *testing.T) {
	columns := "(id int PRIMARY KEY, code text NOT NULL, n numeric, note text)"
	tell(t, "FOR ALL TABLES", nil, func(s *story) {
		s.exec("CREATE TABLE public.t "+columns, "CREATE UNIQUE INDEX t_code ON public.t (code)")
		s.started()
		for _, identity := range []string{"DEFAULT", "FULL", "USING INDEX t_code"} {
			s.exec("ALTER TABLE public.t REPLICA IDENTITY " + identity)
			s.insert("public.t", "VALUES (1, 'a', 1.50, NULL), (2, 'b', NULL, ''), (3, 'c', 'NaN', 'x\"\\y')")
			s.update("public.t", "n = 7.00", "id = 1")
			s.update("public.t", "note = NULL", "id IN (2, 3)")
			s.update("public.t", "id = 10", "id = 1")
			s.update("public.t", "code = 'z'", "id = 2")
			s.update("public.t", "id = 30, code = 'zz', n = 0", "id = 3")
			s.update("public.t", "id = id", "id = 30")
			s.remove("public.t", "id = 10")
			s.remove("public.t", "true")
		}
		s.exec("ALTER TABLE public.t REPLICA IDENTITY NOTHING")
		s.insert("public.t", "VALUES (1, 'a', 1, NULL)")
		s.refuses("does not have a replica identity", "UPDATE public.t SET n = 2")
		s.refuses("does not have a replica identity", "DELETE FROM public.t")
		s.truncate("public.t", "public.t")
	})
}

func TestAKeyOfSeveralColumnsIsWholeInBefore(t *testing.T) {
	tell(t, "FOR ALL TABLES", nil, func(s *story) {
		s.exec("CREATE TABLE public.t (a int, filler text, b text, c date, PRIMARY KEY (c, a))")
		s.started()
		s.insert("public.t", "VALUES (1, 'f', NULL, '2024-02-29'), (2, NULL, 'x', 'infinity')")
		s.update("public.t", "a = 5", "a = 1")
		s.update("public.t", "b = 'y'", "a = 5")
		s.update("public.t", "c = '-infinity'", "a = 2")
		s.remove("public.t", "a = 2")
	})
}

func TestWhatIsNotPublishedDoesNotCome(t *testing.T) {
	table := []string{"CREATE TABLE public.t (id int, v text)", "CREATE TABLE public.other (id int)"}
	tell(t, "FOR TABLE public.t WITH (publish = 'insert, truncate')", table, func(s *story) {
		s.exec("ALTER TABLE public.t REPLICA IDENTITY NOTHING")
		s.started()
		s.insert("public.t", "VALUES (1, 'a')")
		s.exec("UPDATE public.t SET v = 'b'", "DELETE FROM public.t", "INSERT INTO public.other VALUES (1)")
		s.insert("public.t", "VALUES (2, 'a')")
		s.truncate("public.t, public.other", "public.t")
	})
}

func TestSubtransactionsAndInterleavedTransactions(t *testing.T) {
	tell(t, "FOR ALL TABLES", nil, func(s *story) {
		s.exec("CREATE TABLE public.t (id int PRIMARY KEY, v text)")
		s.started()
		other := *s
		other.db, other.told = s.connect(s.url), nil
		s.begin()
		s.insert("public.t", "VALUES (1, 'early')")
		other.begin()
		other.insert("public.t", "VALUES (2, 'late')")
		s.exec("SAVEPOINT a")
		kept := len(s.open)
		s.insert("public.t", "VALUES (3, 'undone')")
		s.exec("ROLLBACK TO a")
		s.open = s.open[:kept]
		s.exec("SAVEPOINT b")
		s.update("public.t", "v = 'kept'", "id = 1")
		s.exec("RELEASE b")
		other.commit()
		s.told = append(s.told, other.told...)
		s.insert("public.t", "VALUES (4, 'end')")
		s.commit()
		s.begin()
		s.insert("public.t", "VALUES (5, 'never')")
		s.rollback()
	})
}

func TestTruncatesOfManyTablesAndTheirOptions(t *testing.T) {
	tell(t, "FOR ALL TABLES", nil, func(s *story) {
		s.exec("CREATE TABLE public.a (id serial PRIMARY KEY)", "CREATE TABLE public.b (id int REFERENCES public.a)",
			"CREATE TABLE public.c (id int)", "CREATE TABLE public.d (id int)")
		s.started()
		s.insert("public.a", "DEFAULT VALUES")
		s.insert("public.b", "VALUES (1)")
		s.truncate("public.d, public.c", "public.d", "public.c")
		s.truncate("public.a RESTART IDENTITY CASCADE", "public.a", "public.b")
		s.begin()
		s.insert("public.a", "DEFAULT VALUES")
		s.truncate("public.c", "public.c")
		s.insert("public.c", "VALUES (1)")
		s.truncate("ONLY public.c, public.d", "public.c", "public.d")
		s.commit()
	})
}

func TestPreparedTransactionsComeWhenTheyAreCommitted(t *testing.T) {
	tell(t, "FOR ALL TABLES", nil, func(s *story) {
		s.messages = true
		s.exec("CREATE TABLE public.t (id int PRIMARY KEY, v text)")
		s.started()
		s.begin()
		s.insert("public.t", "VALUES (1, 'prepared')")
		s.emit(true, "p", "in a prepared transaction")
		gid := s.slot + "_a"
		lines := s.prepare(gid)
		s.insert("public.t", "VALUES (2, 'between')")
		s.begin()
		s.insert("public.t", "VALUES (3, 'never')")
		s.prepare(s.slot + "_b")
		s.commitPrepared(gid, lines)
		s.insert("public.t", "VALUES (4, 'after')")
		s.exec("ROLLBACK PREPARED '" + s.slot + "_b'")
		s.update("public.t", "v = 'x'", "id = 1")
	})
}
