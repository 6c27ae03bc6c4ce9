package replication

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// firstNotFixed is the first type OID that is not assigned by hand in Postgres'
// sources (FirstGenbkiObjectId in src/include/access/transam.h): types below are
// the same in every database, and a decoder knows them. Those up to
// FirstNormalObjectId (16384) are the row types of catalogs and the domains of
// information_schema, which columns seldom use but may.
const firstNotFixed = 10000

// fixed says whether a decoder knows the type. The row types of some catalogs
// (BKI_ROWTYPE_OID), and arrays of them, have OIDs assigned by hand but other
// fields in each version.
func fixed(oid uint32) bool {
	switch oid {
	case 71, 75, 81, 83, 210, 270, 272, 273, 1248, 2842, 2843, 4066, 6101:
		return false
	}
	return oid < firstNotFixed
}

// typesQuery reads one type per row, as the JSON of a change.Type.
//
// What is an array follows get_element_type, and json_cast follows
// json_categorize_type in src/backend/utils/adt/jsonfuncs.c: a function cast to
// json (not jsonb), and neither for arrays and composites nor, since to_json
// looks through them first, for domains.
const typesQuery = `
WITH t AS (
	SELECT t.*, n.nspname, CASE
		WHEN t.typelem <> 0 AND t.typsubscript = 'pg_catalog.array_subscript_handler'::regproc THEN 'array'
		WHEN t.typtype = 'e' THEN 'enum'
		WHEN t.typtype = 'd' THEN 'domain'
		WHEN t.typtype = 'c' THEN 'composite'
		WHEN t.typtype = 'r' THEN 'range'
		WHEN t.typtype = 'm' THEN 'multirange'
		ELSE 'base' END AS kind
	FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
	WHERE t.oid = ANY ($1::oid[]))
SELECT pg_catalog.json_build_object(
	'oid', t.oid::bigint,
	'namespace', t.nspname,
	'name', t.typname,
	'kind', t.kind,
	'base', coalesce(CASE t.kind
		WHEN 'array' THEN t.typelem
		WHEN 'domain' THEN t.typbasetype
		WHEN 'range' THEN (SELECT r.rngsubtype FROM pg_catalog.pg_range r WHERE r.rngtypid = t.oid)
		WHEN 'multirange' THEN (SELECT r.rngtypid FROM pg_catalog.pg_range r WHERE r.rngmultitypid = t.oid)
		END, 0)::bigint,
	'delimiter', CASE t.kind WHEN 'array'
		THEN (SELECT pg_catalog.ascii(e.typdelim::text) FROM pg_catalog.pg_type e WHERE e.oid = t.typelem) END,
	'fields', CASE t.kind WHEN 'composite' THEN
		(SELECT pg_catalog.json_agg(pg_catalog.json_build_object('name', a.attname, 'type', a.atttypid::bigint, 'modifier', a.atttypmod) ORDER BY a.attnum)
		FROM pg_catalog.pg_attribute a WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped) END,
	'json_cast', t.oid >= 16384 AND t.kind NOT IN ('array', 'composite', 'domain') AND EXISTS (
		SELECT FROM pg_catalog.pg_cast c
		WHERE c.castsource = t.oid AND c.casttarget = 'pg_catalog.json'::regtype AND c.castmethod = 'f'))
FROM t`

// Types reads the facts of the types with these OIDs and, recursively, of the
// types that they are made of, ordered by OID. Built-in types are left out, and
// so is one that does not exist (any more): facts come from the catalog as it is
// now, and a change of long ago may use a type that was dropped since.
func (a *Admin) Types(ctx context.Context, oids []uint32) ([]change.Type, error) {
	known := map[uint32]change.Type{}
	want := wanted(known, oids)
	if len(want) == 0 {
		return nil, nil
	}
	err := a.with(ctx, "read types", func(conn *pgx.Conn) error {
		asked := map[uint32]change.Type{} // also those that do not exist
		for len(want) > 0 {
			rows, err := conn.Query(ctx, typesQuery, want)
			if err != nil {
				return err
			}
			found, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
			if err != nil {
				return err
			}
			for _, oid := range want {
				asked[oid] = change.Type{}
			}
			var next []uint32
			for _, raw := range found {
				var t change.Type
				if err := json.Unmarshal(raw, &t); err != nil {
					return fmt.Errorf("read a type: %w", err)
				}
				known[t.OID] = t
				next = append(next, t.Base)
				for _, f := range t.Fields {
					next = append(next, f.Type)
				}
			}
			want = wanted(asked, next)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(known), func(x, y change.Type) int { return int(int64(x.OID) - int64(y.OID)) }), nil
}

// wanted are the OIDs that are neither built in nor among those asked for, each
// once.
func wanted(asked map[uint32]change.Type, oids []uint32) []uint32 {
	var want []uint32
	for _, oid := range oids {
		if _, ok := asked[oid]; !ok && !fixed(oid) {
			want = append(want, oid)
		}
	}
	slices.Sort(want)
	return slices.Compact(want)
}
