package rowfile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/pgoutput"
	"github.com/tidemark-cdc/tidemark/internal/pgtest"
	"github.com/tidemark-cdc/tidemark/internal/rowfile"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// world is a database with a slot and a publication of all tables, both called
// like it.
type world struct {
	name string
	url  string
	// app is a connection as an application has it, and oracle one with the
	// pinned settings, which reads what app has written.
	app, oracle *pgconn.PgConn
	admin       *replication.Admin
	// last is the position of the last change that was streamed.
	last change.Position
}

// hostile are settings of a role or a database that change the text of values, as
// SQL has them.
var hostile = map[string]string{
	"DateStyle": "'SQL, DMY'", "IntervalStyle": "'iso_8601'", "TimeZone": "'Asia/Kathmandu'", "bytea_output": "'escape'",
	"extra_float_digits": "'-5'", "lc_monetary": "'C.UTF-8'", "quote_all_identifiers": "'on'", "search_path": "public, pg_catalog",
	"client_encoding": "'LATIN1'", "xmlbinary": "'hex'",
}

// onServers runs f on Postgres 15 and 18, with one server for all of it.
func onServers(t *testing.T, f func(t *testing.T, srv *pgtest.Server)) {
	for _, v := range []int{15, 18} {
		t.Run(fmt.Sprint("postgres", v), func(t *testing.T) {
			f(t, pgtest.New(t, pgtest.Options{Version: v, Settings: map[string]string{"fsync": "off", "max_wal_size": "4GB"}}))
		})
	}
}

// newWorld makes a database, with clauses for its CREATE DATABASE, and with the
// given settings of the role that is connected as, or of the database itself.
func newWorld(t *testing.T, srv *pgtest.Server, name, clauses string, ofRole, ofDatabase map[string]string) *world {
	t.Helper()
	w := &world{name: name, url: srv.URLFor("role_"+name, "", name)}
	root := connect(t, srv.URL(), nil)
	run(t, root, "CREATE DATABASE "+name+" "+clauses, "CREATE ROLE role_"+name+" LOGIN SUPERUSER REPLICATION")
	for setting, value := range ofRole {
		run(t, root, "ALTER ROLE role_"+name+" SET "+setting+" = "+value)
	}
	for setting, value := range ofDatabase {
		run(t, root, "ALTER DATABASE "+name+" SET "+setting+" = "+value)
	}
	pinned := replication.PinnedSettings()
	own := map[string]string{"client_encoding": "UTF8"}
	if strings.Contains(clauses, "SQL_ASCII") {
		pinned["client_encoding"], own["client_encoding"] = "SQL_ASCII", "SQL_ASCII"
	}
	w.app, w.oracle = connect(t, w.url, own), connect(t, w.url, pinned)
	run(t, w.app, "CREATE PUBLICATION "+name+" FOR ALL TABLES", "CREATE TABLE ends (id int)")
	var err error
	if w.admin, err = replication.NewAdmin(w.config(), quiet()); err != nil {
		t.Fatal(err)
	}
	if _, err = w.admin.CreateSlot(t.Context(), name, false); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) config() replication.Config {
	return replication.Config{ConnString: w.url, Slot: w.name, Publications: []string{w.name}}
}

// stream reads what has been committed since the slot was made, or since the
// last stream, as the streamer does. The changes are valid for good.
func (w *world) stream(t *testing.T) []change.Change {
	t.Helper()
	run(t, w.app, "INSERT INTO ends VALUES (1)")
	session, err := replication.Open(t.Context(), w.config(), quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close(context.Background())
	for err = session.Start(t.Context()); errors.Is(err, replication.ErrSlotInUse); err = session.Start(t.Context()) {
	}
	if err != nil {
		t.Fatal(err)
	}
	framer := pgoutput.NewFramer(pgoutput.FramerConfig{
		TimelineOf: func(change.LSN) change.Timeline { return 1 },
		Describe: func(r *change.Relation) (err error) {
			var oids []uint32
			for _, c := range r.Columns {
				oids = append(oids, c.Type)
			}
			r.Types, err = w.admin.Types(t.Context(), oids)
			return err
		},
	})
	var changes []change.Change
	for ended := false; ; {
		m, err := session.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if m.Keepalive {
			continue
		}
		frame, err := framer.Frame(m.WALStart, 0, bytes.Clone(m.Data))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range frame.Changes {
			switch {
			case !w.last.Less(c.Position):
			case c.Relation.Name == "ends":
				ended = true
			default:
				changes = append(changes, c)
			}
			w.last = c.Position
		}
		if frame.Kind == pgoutput.Commit {
			session.NoteEnd(frame.CommitEnd)
			session.SetAck(frame.CommitEnd)
			if ended {
				return changes
			}
		}
	}
}

// decoded is a change as the lake has it.
type decoded struct {
	table, before, after string
	op                   change.Operation
	unchanged            []string
}

// decodeAll writes the changes as objects of the given number of rows, and gives
// what stands in these.
func decodeAll(t *testing.T, changes []change.Change, size int) []decoded {
	t.Helper()
	var out []decoded
	for segment := range slices.Chunk(changes, size) {
		var object bytes.Buffer
		w, err := rowfile.NewWriter(&object, rowfile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(segment); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
		rows := readObject(t, object.Bytes())
		if len(rows) != len(segment) {
			t.Fatalf("the object has %d rows of %d", len(rows), len(segment))
		}
		for i, row := range rows {
			row.table = segment[i].Relation.Name
			out = append(out, row)
		}
	}
	return out
}

// readObject reads an object with Arrow; table is left empty.
func readObject(t *testing.T, object []byte) []decoded {
	t.Helper()
	table, err := pqarrow.ReadTable(t.Context(), bytes.NewReader(object), nil, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Release()
	operations := map[string]change.Operation{}
	for _, op := range []change.Operation{change.Insert, change.Update, change.Delete, change.Truncate, change.Message} {
		operations[op.String()] = op
	}
	var out []decoded
	records := array.NewTableReader(table, 0)
	defer records.Release()
	for records.Next() {
		record := records.RecordBatch()
		texts := func(column string) *array.String {
			return record.Column(record.Schema().FieldIndices(column)[0]).(*array.String)
		}
		before, after, operation := texts("before"), texts("after"), texts("operation")
		unchanged := record.Column(record.Schema().FieldIndices("unchanged")[0]).(*array.List)
		names := unchanged.ListValues().(*array.String)
		for i := range int(record.NumRows()) {
			row := decoded{op: operations[operation.Value(i)]}
			if before.IsValid(i) {
				row.before = strings.Clone(before.Value(i))
			}
			if after.IsValid(i) {
				row.after = strings.Clone(after.Value(i))
			}
			from, to := unchanged.ValueOffsets(i)
			for j := from; j < to; j++ {
				row.unchanged = append(row.unchanged, strings.Clone(names.Value(int(j))))
			}
			out = append(out, row)
		}
	}
	if err := records.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func connect(t *testing.T, url string, settings map[string]string) *pgconn.PgConn {
	t.Helper()
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(cfg.RuntimeParams, settings)
	conn, err := pgconn.ConnectConfig(t.Context(), &cfg.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// run runs statements and gives the first column of the rows of the last one.
func run(t *testing.T, conn *pgconn.PgConn, statements ...string) []string {
	t.Helper()
	var out []string
	for _, sql := range statements {
		results, err := conn.Exec(t.Context(), sql).ReadAll()
		if err != nil {
			t.Fatalf("%.3000s: %v", sql, err)
		}
		out = nil
		for _, row := range results[len(results)-1].Rows {
			out = append(out, string(row[0]))
		}
	}
	return out
}

// toJSON asks the oracle for rows.
func (w *world) toJSON(t *testing.T, table, where string) []string {
	t.Helper()
	return run(t, w.oracle, "SELECT to_json(x) FROM public."+table+" x "+where)
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
