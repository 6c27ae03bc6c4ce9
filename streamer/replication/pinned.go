package replication

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// PinnedSettings are the settings of the replication connection that shape the
// text of values, by their names and as SHOW prints them. They go into the
// startup packet, where they win over the settings of role and database, and
// hold for the whole session. The caller may change the map.
//
// Only client_encoding is another on a SQL_ASCII database (encodingFor).
//
// search_path is among them since it decides how the names in regclass, regtype
// and their kin are qualified, and quote_all_identifiers how they are quoted.
func PinnedSettings() map[string]string {
	return map[string]string{
		"client_encoding":       "UTF8",
		"DateStyle":             "ISO, YMD",
		"IntervalStyle":         "postgres",
		"TimeZone":              "UTC",
		"extra_float_digits":    "3",
		"bytea_output":          "hex",
		"lc_monetary":           "C",
		"search_path":           "pg_catalog",
		"quote_all_identifiers": "off",
	}
}

// sessionSettings adds what keeps a role's timeouts from ending the session,
// and what lets the server's warnings through, one of which matters: 18 skips a
// missing publication with a warning.
func sessionSettings() map[string]string {
	all := PinnedSettings()
	maps.Copy(all, map[string]string{
		"client_min_messages":                 "notice",
		"statement_timeout":                   "0",
		"lock_timeout":                        "0",
		"idle_session_timeout":                "0",
		"idle_in_transaction_session_timeout": "0",
	})
	return all
}

// encodingFor is the client_encoding for a database of the given encoding. A
// SQL_ASCII database holds any bytes, and its text is asked for as it is: the
// server cannot convert it, but for UTF8 it checks it, and ends the stream at
// the first text that is not valid (pg_server_to_any in
// src/backend/utils/mb/mbutils.c).
func encodingFor(database string) string {
	if database == "SQL_ASCII" {
		return "SQL_ASCII"
	}
	return "UTF8"
}

// pinEncoding sets what the startup packet could not, since the encoding of the
// database is known only after it.
func pinEncoding(ctx context.Context, conn *pgconn.PgConn) error {
	encoding := encodingFor(conn.ParameterStatus("server_encoding"))
	if encoding == "UTF8" {
		return nil
	}
	if _, err := conn.Exec(ctx, "SET client_encoding = '"+encoding+"'").ReadAll(); err != nil {
		return fmt.Errorf("set client_encoding: %w", err)
	}
	return nil
}

// verifyPinned asks the server whether the pinned settings took hold. A pooler
// or proxy in between may have dropped them.
func verifyPinned(ctx context.Context, conn *pgconn.PgConn) error {
	want := sessionSettings()
	want["client_encoding"] = encodingFor(conn.ParameterStatus("server_encoding"))
	names := slices.Sorted(maps.Keys(want))
	calls := make([]string, len(names))
	for i, name := range names {
		calls[i] = "pg_catalog.current_setting('" + name + "')"
	}
	row, err := queryRow(ctx, conn, "SELECT "+strings.Join(calls, ", "), len(names))
	if err != nil {
		return fmt.Errorf("read session settings: %w", err)
	}
	for i, name := range names {
		if row[i] != want[name] {
			return &Error{Kind: ErrSettings, Text: fmt.Sprintf(
				"the server has %s = %q on the replication connection instead of %q, so values would not be copied as they are: connect to Postgres directly and not through a pooler that drops startup parameters",
				name, row[i], want[name])}
		}
	}
	return nil
}

// queryRow runs a query that gives exactly one row of n columns, by the simple
// protocol: the extended one is not available on a replication connection. NULL
// comes as the empty string.
func queryRow(ctx context.Context, conn *pgconn.PgConn, sql string, n int) ([]string, error) {
	rows, err := queryRows(ctx, conn, sql, n)
	if err != nil {
		return nil, err
	}
	if len(rows) != 1 {
		return nil, fmt.Errorf("the server gave %d rows instead of one", len(rows))
	}
	return rows[0], nil
}

func queryRows(ctx context.Context, conn *pgconn.PgConn, sql string, n int) ([][]string, error) {
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(results) != 1 {
		return nil, fmt.Errorf("the server gave %d results instead of one", len(results))
	}
	rows := make([][]string, len(results[0].Rows))
	for i, r := range results[0].Rows {
		if len(r) != n {
			return nil, fmt.Errorf("the server gave %d columns instead of %d", len(r), n)
		}
		for _, v := range r {
			rows[i] = append(rows[i], string(v))
		}
	}
	return rows, nil
}
