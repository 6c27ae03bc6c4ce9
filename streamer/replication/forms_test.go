package replication

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// A connection string may have any form that libpq takes, and parameters that
// would change what values look like: the pinned settings win over all of them,
// and the connection is named after the pipeline.
func TestConnectionStringsOfEveryFormWorkAndChangeNoPinnedSetting(t *testing.T) {
	hostile := "-c DateStyle=German -c extra_float_digits=0 -c timezone=Asia/Kolkata -c search_path=public -c client_min_messages=error -c statement_timeout=1ms"
	onEach(t, func(t *testing.T, d *database) {
		port := d.srv.Port()
		for name, dsn := range map[string]string{
			"a URL":                 d.url,
			"a URL with parameters": d.url + "&application_name=mine&connect_timeout=20&target_session_attrs=read-write",
			"a URL with options":    d.url + "&options=" + strings.ReplaceAll(url.QueryEscape(hostile), "+", "%20"),
			"a URL with settings":   d.url + "&datestyle=German&TimeZone=Asia/Kolkata&statement_timeout=1",
			"libpq's own":           d.url + "&keepalives=1&keepalives_idle=30&keepalives_interval=5&keepalives_count=3&tcp_user_timeout=1000&gssencmode=prefer&sslcompression=0&fallback_application_name=x&load_balance_hosts=disable",
			"several hosts":         fmt.Sprintf("postgres://postgres@127.0.0.1:1,127.0.0.1:%d/%s?sslmode=disable", port, d.name),
			"keywords":              fmt.Sprintf("host=127.0.0.1 port=%d user=postgres dbname=%s sslmode=disable", port, d.name),
			"quoted keywords":       fmt.Sprintf("host = '127.0.0.1' port='%d' user='postgres' dbname='%s' sslmode=disable application_name='it\\'s mine' options='%s'", port, d.name, hostile),
		} {
			cfg := d.config()
			cfg.ConnString = dsn
			s, err := Open(t.Context(), cfg, discard())
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if err := s.Start(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if got := ask[string](t, d.conn, "SELECT application_name FROM pg_stat_activity WHERE pid = $1", int32(s.PID())); got != "tidemark/"+d.name {
				t.Errorf("%s: application_name is %q", name, got)
			}
			admin, err := NewAdmin(cfg, discard())
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if slot, err := admin.Slot(t.Context()); err != nil || slot.ActivePID != s.PID() {
				t.Errorf("%s: the slot is %+v, %v", name, slot, err)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// What asks for more than there is, is refused and not ignored.
func TestParametersThatAskForSecurityAreNotDropped(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, servers[15])
	for _, parameter := range []string{"gssencmode=require", "sslcrl=/nowhere", "requirepeer=postgres"} {
		cfg := d.config()
		cfg.ConnString += "&" + parameter
		if s, err := Open(t.Context(), cfg, discard()); err == nil {
			t.Errorf("%s is ignored", parameter)
			_ = s.Close(t.Context())
		}
	}
}

func TestPublicationNamesOfEveryKindWork(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		for i, name := range []string{"Orders", `With "quotes" and spaces`, "it's, with a comma", "naïve ☃", `back\slash`} {
			if _, err := d.admin.CreatePublication(t.Context(), name, Published{}); err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			cfg := d.config()
			cfg.Publications = []string{name}
			admin, err := NewAdmin(cfg, discard())
			if err != nil {
				t.Fatal(err)
			}
			if f, err := admin.Inspect(t.Context()); err != nil || len(f.Publications) != 1 || !f.Publications[0].Exists {
				t.Errorf("%s: %+v, %v", name, f.Publications, err)
			}
			if tables, err := admin.Tables(t.Context(), nil, nil); err != nil || len(tables) != 1 {
				t.Errorf("%s: tables %v, %v", name, tables, err)
			}
			// A slot reads the catalog as it was: each name has one of its own.
			cfg.Slot = fmt.Sprintf("%s_%d", d.name, i)
			if _, err := admin.CreateSlot(t.Context(), cfg.Slot, false); err != nil {
				t.Fatal(err)
			}
			s := d.started(t, cfg)
			r := receiveAll(t, s, true)
			execute(t, d.conn, fmt.Sprintf("INSERT INTO t VALUES (%d, 'x')", i))
			eventually(t, name+": the row comes", func() bool {
				select {
				case <-r.done:
					t.Fatalf("%s: %v", name, r.err)
				default:
				}
				return r.rows.Load() == 1
			})
			if err := s.Close(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			execute(t, d.conn, "DROP PUBLICATION "+pgx.Identifier{name}.Sanitize())
			if _, err := admin.DropSlot(t.Context(), cfg.Slot); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
