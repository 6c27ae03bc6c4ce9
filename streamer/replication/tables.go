package replication

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// TableState is how a table stands towards the publications.
type TableState struct {
	// Name is schema-qualified and quoted as Postgres prints it.
	Name string
	// OID is zero if there is no table of this name.
	OID uint32
	// Published says whether one of the publications has the table: by itself, by
	// its partitions, or as a partition of one that it has.
	Published bool
	// Asked says that it is one of the names that were asked for.
	Asked bool
}

// tablesQuery reads the tables of the publications $1, those whose schemas and
// names are $2 and $3, and those whose OIDs are in $4.
const tablesQuery = `
WITH published AS (
	SELECT DISTINCT c.oid
	FROM pg_catalog.pg_publication_tables t
	JOIN pg_catalog.pg_namespace n ON n.nspname = t.schemaname
	JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename
	WHERE t.pubname = ANY ($1::text[])
), asked AS (
	SELECT w.nspname, w.relname, c.oid
	FROM unnest($2::text[], $3::text[]) AS w(nspname, relname)
	LEFT JOIN (pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace)
	ON n.nspname = w.nspname AND c.relname = w.relname
), looked AS (
	SELECT oid FROM published
	UNION SELECT oid FROM asked
	UNION SELECT oid FROM pg_catalog.pg_class WHERE oid::bigint = ANY ($4::bigint[])
)
SELECT format('%I.%I', n.nspname, c.relname), c.oid::bigint,
	EXISTS (SELECT FROM published p WHERE p.oid = c.oid)
	OR EXISTS (
		SELECT FROM pg_catalog.pg_publication_rel r
		JOIN pg_catalog.pg_publication p ON p.oid = r.prpubid AND p.pubname = ANY ($1::text[])
		WHERE r.prrelid = c.oid)
	OR (c.relkind = 'p' OR c.relispartition) AND EXISTS (
		SELECT FROM published p WHERE p.oid IN (
			SELECT relid FROM pg_partition_tree(c.oid) UNION SELECT relid FROM pg_partition_ancestors(c.oid))),
	EXISTS (SELECT FROM asked a WHERE a.oid = c.oid)
FROM looked l
JOIN pg_catalog.pg_class c ON c.oid = l.oid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
UNION ALL
SELECT format('%I.%I', a.nspname, a.relname), 0, false, true FROM asked a WHERE a.oid IS NULL
ORDER BY 1`

// Tables reads the tables that the publications have now (pg_publication_tables),
// and, whether they have them or not, those of the names, which are written as in
// Published.Tables, and those of the OIDs that still exist. In the order of the
// names.
func (a *Admin) Tables(ctx context.Context, names []string, oids []uint32) ([]TableState, error) {
	schemas, tables, ids := make([]string, len(names)), make([]string, len(names)), make([]int64, len(oids))
	for i, name := range names {
		ident, err := parseTable(name)
		if err != nil {
			return nil, fmt.Errorf("read the published tables: %w", err)
		}
		schemas[i], tables[i] = ident[0], ident[1]
	}
	for i, oid := range oids {
		ids[i] = int64(oid)
	}
	var states []TableState
	err := a.with(ctx, "read the published tables", func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, tablesQuery, a.cfg.Publications, schemas, tables, ids)
		if err != nil {
			return err
		}
		states, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (s TableState, err error) {
			var oid int64
			err = row.Scan(&s.Name, &oid, &s.Published, &s.Asked)
			s.OID = uint32(oid)
			return s, err
		})
		return err
	})
	return states, err
}
