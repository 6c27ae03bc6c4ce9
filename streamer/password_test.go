package streamer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/pgtest"
)

// The role's password is changed while a streamer runs. The connection that
// there is goes on; the next one is refused until the file with the password has
// the new one.
func TestAChangedPasswordIsWaitedFor(t *testing.T) {
	w := newWorld(t, pgtest.Options{Password: "before"})
	file := filepath.Join(t.TempDir(), "pgpass")
	password := func(p string) {
		t.Helper()
		w.must(os.WriteFile(file, []byte(fmt.Sprintf("127.0.0.1:%d:*:%s:%s\n", w.pg.Port(), pgtest.Superuser, p)), 0o600))
	}
	password("before")
	w.cfg.Replication.ConnString = fmt.Sprintf("host=127.0.0.1 port=%d user=%s dbname=postgres sslmode=disable passfile='%s'", w.pg.Port(), pgtest.Superuser, file)
	s := w.start()
	w.insert(5)
	w.caughtUp()
	w.exec("ALTER ROLE " + pgtest.Superuser + " PASSWORD 'after'")
	w.insert(5)
	w.caughtUp()
	w.exec("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots")
	w.until("the streamer waits for the password", func() bool {
		return strings.Contains(s.Status().State, "if its password was changed, put the new one where postgres.password_file")
	})
	if st := s.Status(); st.Connected || st.Phase != Connecting {
		t.Errorf("it is %s, connected: %v", st.Phase, st.Connected)
	}
	w.insert(5)
	password("after")
	w.caughtUp()
	w.must(s.stop())
	w.checkRows()
	for _, secret := range []string{"before", "after"} {
		if w.logged("'"+secret+"'") || w.logged("password="+secret) {
			t.Errorf("the password %q is in the log", secret)
		}
	}
	if !w.logged("level=WARN", "Postgres cannot be streamed from; trying again", "SQLSTATE 28P01") {
		t.Error("the log does not say what the server said")
	}
}
