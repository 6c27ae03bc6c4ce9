// Command record runs the scripts of internal/pgoutput/testdata against a real
// Postgres server and writes what the server's pgoutput sends for them, for the
// package's tests to replay. From internal/pgoutput:
//
//	go run ./testdata/record -url postgres://postgres@127.0.0.1:5432/postgres rows toast
//	go test . -update
//
// The server needs wal_level=logical and a superuser. Each script runs in a
// database of its own, tidemark_record, which is dropped before and after.
//
// # Scripts
//
// testdata/NAME.sql holds one statement after another, each ending with a
// semicolon at the end of a line. Lines that begin with "-- " and a word of
// these are directives:
//
//	-- slot       publication and slot are made here; the stream begins
//	-- on N       what follows runs on connection N (1 at the start)
//	-- oracle     the next statement's result, one JSON text per row, is kept:
//	              each must come out as some change's image
//	-- publish X  with this clause instead of "for all tables"
//
// # Sessions
//
// testdata/NAME.VERSION.session holds one item per line, in this order: the
// facts of each user-defined type ("type" and JSON), the oracle's texts
// ("oracle" and JSON in a Go string literal), and the messages (WALStart in hexadecimal, the message
// in hexadecimal).
package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

const name = "tidemark_record" // of database, publication and slot

func main() {
	url := flag.String("url", "", "connection string of a superuser, without a password that matters")
	dir := flag.String("dir", "testdata", "folder of the scripts")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for _, script := range flag.Args() {
		if err := record(ctx, *url, *dir, script); err != nil {
			fmt.Fprintf(os.Stderr, "record %s: %v\n", script, err)
			os.Exit(1)
		}
	}
}

// recorder is the state of one script.
type recorder struct {
	url     string
	conns   map[string]*pgconn.PgConn
	on      string
	publish string
	oracle  bool
	texts   []string
}

func record(ctx context.Context, url, dir, script string) (err error) {
	admin, err := pgconn.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer admin.Close(ctx)
	if err := drop(ctx, admin); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop(ctx, admin)) }()
	if err := exec(ctx, admin, "create database "+name); err != nil {
		return err
	}

	r := &recorder{url: url, conns: make(map[string]*pgconn.PgConn), on: "1", publish: "for all tables"}
	defer func() {
		for _, c := range r.conns {
			c.Close(ctx)
		}
	}()
	text, err := os.ReadFile(filepath.Join(dir, script+".sql"))
	if err != nil {
		return err
	}
	if err := r.run(ctx, string(text)); err != nil {
		return err
	}
	conn, err := r.conn(ctx)
	if err != nil {
		return err
	}
	types, err := userTypes(ctx, conn)
	if err != nil {
		return err
	}
	end, err := query(ctx, conn, "select pg_current_wal_flush_lsn()")
	if err != nil {
		return err
	}
	messages, err := stream(ctx, url, end[0])
	if err != nil {
		return err
	}
	version, _, _ := strings.Cut(conn.ParameterStatus("server_version"), ".")
	lines := append(types, r.texts...)
	lines = append(lines, messages...)
	out := filepath.Join(dir, script+"."+version+".session")
	return os.WriteFile(out, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

func drop(ctx context.Context, admin *pgconn.PgConn) error {
	return exec(ctx, admin,
		"select pg_terminate_backend(active_pid, 10000) from pg_replication_slots where active and slot_name = '"+name+"'",
		"select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = '"+name+"'",
		"drop database if exists "+name+" with (force)")
}

// run runs a script, statement by statement.
func (r *recorder) run(ctx context.Context, script string) error {
	var statement strings.Builder
	lines := bufio.NewScanner(strings.NewReader(script))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if d, ok := strings.CutPrefix(line, "-- "); ok {
			if err := r.directive(ctx, d); err != nil {
				return err
			}
			continue
		}
		statement.WriteString(line + "\n")
		if !strings.HasSuffix(line, ";") {
			continue
		}
		if err := r.statement(ctx, statement.String()); err != nil {
			return fmt.Errorf("%s: %w", statement.String(), err)
		}
		statement.Reset()
	}
	return lines.Err()
}

func (r *recorder) directive(ctx context.Context, d string) error {
	word, rest, _ := strings.Cut(d, " ")
	switch word {
	case "on":
		r.on = rest
	case "oracle":
		r.oracle = true
	case "publish":
		r.publish = rest
	case "slot":
		conn, err := r.conn(ctx)
		if err != nil {
			return err
		}
		return exec(ctx, conn,
			"create publication "+name+" "+r.publish,
			"select pg_create_logical_replication_slot('"+name+"', 'pgoutput')")
	}
	return nil
}

func (r *recorder) statement(ctx context.Context, sql string) error {
	conn, err := r.conn(ctx)
	if err != nil {
		return err
	}
	if !r.oracle {
		return exec(ctx, conn, sql)
	}
	r.oracle = false
	rows, err := query(ctx, conn, sql)
	for _, row := range rows {
		r.texts = append(r.texts, "oracle "+strconv.Quote(row))
	}
	return err
}

func (r *recorder) conn(ctx context.Context) (*pgconn.PgConn, error) {
	if c := r.conns[r.on]; c != nil {
		return c, nil
	}
	c, err := connect(ctx, r.url, nil)
	if err == nil {
		r.conns[r.on] = c
	}
	return c, err
}

// connect connects to the scripts' database with the settings that the
// streamer pins.
func connect(ctx context.Context, url string, more map[string]string) (*pgconn.PgConn, error) {
	cfg, err := pgconn.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	cfg.Database = name
	for _, m := range []map[string]string{more, {
		"client_encoding": "UTF8", "DateStyle": "ISO,YMD", "IntervalStyle": "postgres", "TimeZone": "UTC",
		"extra_float_digits": "3", "bytea_output": "hex", "lc_monetary": "C",
	}} {
		for k, v := range m {
			cfg.RuntimeParams[k] = v
		}
	}
	return pgconn.ConnectConfig(ctx, cfg)
}

func exec(ctx context.Context, conn *pgconn.PgConn, statements ...string) error {
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s).ReadAll(); err != nil {
			return err
		}
	}
	return nil
}

// query gives the first column of a statement's rows.
func query(ctx context.Context, conn *pgconn.PgConn, sql string) ([]string, error) {
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, row := range results[0].Rows {
		out = append(out, string(row[0]))
	}
	return out, nil
}

// userTypes gives the facts that the decoder needs of every type that is not
// built in.
func userTypes(ctx context.Context, conn *pgconn.PgConn) ([]string, error) {
	rows, err := query(ctx, conn, `select json_strip_nulls(json_build_object('oid', t.oid::int8, 'namespace', n.nspname, 'name', t.typname,
		'kind', case when t.typelem <> 0 and t.typsubscript = 'array_subscript_handler'::regproc then 'array' else
			(array['base','enum','domain','composite','range','multirange'])[strpos('bedcrm', t.typtype::text)] end,
		'base', case when t.typtype = 'd' then t.typbasetype::int8 else t.typelem::int8 end,
		'delimiter', case when t.typcategory = 'A' then (select ascii(e.typdelim::text) from pg_type e where e.oid = t.typelem) end,
		'fields', (select json_agg(json_build_object('name', a.attname, 'type', a.atttypid::int8, 'modifier', a.atttypmod) order by a.attnum)
			from pg_attribute a where t.typtype = 'c' and a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped)))
		from pg_type t join pg_namespace n on n.oid = t.typnamespace where t.oid >= 16384 order by t.oid`)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, row := range rows {
		var t change.Type
		if err := json.Unmarshal([]byte(row), &t); err != nil {
			return nil, err
		}
		text, err := json.Marshal(t)
		if err != nil {
			return nil, err
		}
		out = append(out, "type "+string(text))
	}
	return out, nil
}

// stream reads the slot until everything below end has come.
func stream(ctx context.Context, url, end string) ([]string, error) {
	until, err := pglogrepl.ParseLSN(end)
	if err != nil {
		return nil, err
	}
	conn, err := connect(ctx, url, map[string]string{"replication": "database"})
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	err = pglogrepl.StartReplication(ctx, conn, name, 0, pglogrepl.StartReplicationOptions{
		PluginArgs: []string{"proto_version '1'", "publication_names '" + name + "'", "messages 'true'"},
	})
	if err != nil {
		return nil, err
	}
	var out []string
	for {
		msg, err := conn.ReceiveMessage(ctx)
		if err != nil {
			return nil, err
		}
		data, ok := msg.(*pgproto3.CopyData)
		if !ok {
			return nil, fmt.Errorf("unexpected message %T", msg)
		}
		switch data.Data[0] {
		case pglogrepl.XLogDataByteID:
			x, err := pglogrepl.ParseXLogData(data.Data[1:])
			if err != nil {
				return nil, err
			}
			out = append(out, fmt.Sprintf("%016x %s", uint64(x.WALStart), hex.EncodeToString(x.WALData)))
		case pglogrepl.PrimaryKeepaliveMessageByteID:
			k, err := pglogrepl.ParsePrimaryKeepaliveMessage(data.Data[1:])
			if err != nil {
				return nil, err
			}
			if k.ServerWALEnd >= until {
				return out, nil
			}
		}
	}
}
