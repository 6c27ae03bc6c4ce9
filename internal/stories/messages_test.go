package stories

import (
	"context"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

func TestLogicalMessagesStandWhereTheyWereEmitted(t *testing.T) {
	for name, kept := range map[string]bool{"kept": true, "dropped": false} {
		t.Run(name, func(t *testing.T) {
			tell(t, "FOR ALL TABLES", nil, func(s *story) {
				s.messages = kept
				s.exec("CREATE TABLE public.t (id int PRIMARY KEY)")
				s.started()
				s.insert("public.t", "VALUES (1)")
				s.emit(true, "alone", "in a transaction of its own")
				s.emit(false, "now", `quotes " and \ and ü`)
				s.begin()
				s.insert("public.t", "VALUES (2)")
				s.emit(true, "inside", "")
				s.emit(false, "at once", "before the rows around it, which are not committed yet")
				s.update("public.t", "id = 3", "id = 2")
				s.commit()
				s.begin()
				s.emit(true, "inside", "never")
				s.emit(false, "at once", "although it is rolled back")
				s.rollback()
				// A non-transactional message right before a commit record, and right after it.
				s.begin()
				s.insert("public.t", "VALUES (4)")
				s.emit(false, "at once", "adjacent")
				s.commit()
				s.emit(false, "now", strings.Repeat("long ", 10_000))
				s.insert("public.t", "VALUES (5)")
			})
		})
	}
}

func TestAMessageThatIsNotTextIsHexadecimal(t *testing.T) {
	tell(t, "FOR ALL TABLES", nil, func(s *story) {
		s.messages = true
		s.started()
		ask[string](s, `SELECT pg_logical_emit_message(true, 'bytes', '\x00ff41'::bytea)::text`)
		s.expect("message", "", "", `{"prefix":"bytes","content_hex":"00ff41"}`)
		ask[string](s, `SELECT pg_logical_emit_message(true, 'bytes', '\x0041'::bytea)::text`)
		s.expect("message", "", "", `{"prefix":"bytes","content":"\u0000A"}`)
	})
}

func TestTransactionsFromElsewhereByTheSettingOfOrigin(t *testing.T) {
	for name, localOnly := range map[string]bool{"any": false, "none": true} {
		t.Run(name, func(t *testing.T) {
			tell(t, "FOR ALL TABLES", nil, func(s *story) {
				s.messages, s.localOnly = true, localOnly
				origin := s.slot + "_origin"
				s.exec("CREATE TABLE public.t (id int PRIMARY KEY, v text)",
					"SELECT pg_replication_origin_create('"+origin+"')")
				s.dropOriginAtEnd(origin)
				s.started()
				s.insert("public.t", "VALUES (1, 'here')")

				// elsewhere tells something that is expected with origin any only.
				elsewhere := func(tell func()) {
					n := len(s.told)
					tell()
					if localOnly {
						s.told = s.told[:n]
					}
				}
				s.exec("SELECT pg_replication_origin_session_setup('" + origin + "')")
				elsewhere(func() {
					s.insert("public.t", "VALUES (2, 'elsewhere')")
					s.begin()
					s.exec("SELECT pg_replication_origin_xact_setup('0/10', now())")
					s.update("public.t", "v = 'there'", "id = 2")
					s.emit(true, "m", "elsewhere")
					s.exec("CREATE TABLE public.u (id int)")
					s.insert("public.u", "VALUES (1)")
					s.truncate("public.u, public.t", "public.u", "public.t")
					s.commit()
				})
				s.emit(false, "m", "Postgres does not say from where")
				s.exec("SELECT pg_replication_origin_session_reset()")
				s.insert("public.u", "VALUES (2)")
				s.insert("public.t", "VALUES (3, 'here again')")
				s.emit(true, "m", "here")
			})
		})
	}
}

// dropOriginAtEnd drops a replication origin, which belongs to the whole server,
// when the test ends.
func (s *story) dropOriginAtEnd(origin string) {
	db := s.connect(s.url)
	s.Cleanup(func() {
		if _, err := db.Exec(context.Background(), "SELECT pg_replication_origin_drop($1)", origin); err != nil {
			s.Errorf("drop origin %s: %v", origin, err)
		}
	})
}

// Whatever is filtered takes its ordinal, so a setting shifts no position.
func TestSettingsShiftNoPosition(t *testing.T) {
	t.Parallel()
	for _, v := range versions {
		s := newStory(t, v)
		s.exec("CREATE TABLE public.t (id int PRIMARY KEY)", "CREATE PUBLICATION "+s.slot+" FOR ALL TABLES",
			"BEGIN", "SELECT pg_logical_emit_message(true, 'm', '')", "INSERT INTO public.t VALUES (1)",
			"SELECT pg_logical_emit_message(true, 'm', '')", "INSERT INTO public.t VALUES (2)", "COMMIT")
		end, err := change.ParseLSN(ask[string](s, "SELECT pg_current_wal_insert_lsn()::text"))
		if err != nil {
			t.Fatal(err)
		}
		var at [2][]change.Position
		for i, messages := range []bool{false, true} {
			s.messages = messages
			for _, c := range s.upTo(s.readAgain(), end) {
				if c.Operation == change.Insert {
					at[i] = append(at[i], c.Position)
				}
			}
			if len(at[i]) != 2 || at[i][0].Ordinal != 1 || at[i][1].Ordinal != 3 {
				t.Errorf("Postgres %d, messages %v: the rows stand at %s", v, messages, at[i])
			}
		}
		if at[0][0] != at[1][0] {
			t.Errorf("Postgres %d: %s without messages, %s with them", v, at[0][0], at[1][0])
		}
	}
}

// Postgres looks an origin up in its catalog as it was then.
func TestAnOriginThatWasDroppedSinceIsAnOriginAllTheSame(t *testing.T) {
	tell(t, "FOR ALL TABLES", nil, func(s *story) {
		s.localOnly = true
		origin := s.slot + "_dropped"
		s.exec("CREATE TABLE public.t (id int PRIMARY KEY)", "SELECT pg_replication_origin_create('"+origin+"')",
			"SELECT pg_replication_origin_session_setup('"+origin+"')",
			"INSERT INTO public.t VALUES (1)",
			"SELECT pg_replication_origin_session_reset()", "SELECT pg_replication_origin_drop('"+origin+"')", "VACUUM pg_replication_origin")
		s.insert("public.t", "VALUES (2)")
	})
}
