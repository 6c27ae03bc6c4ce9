package replication

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Published is what a publication is to be of.
type Published struct {
	// Tables are written as in SQL: schema.table or table (in public), folded to
	// lower case unless in double quotes. None are all tables.
	Tables []string
	// ViaRoot publishes the rows of partitions as those of their root
	// (publish_via_partition_root).
	ViaRoot bool
}

func (p Published) idents() ([]pgx.Identifier, error) {
	idents := make([]pgx.Identifier, len(p.Tables))
	for i, t := range p.Tables {
		ident, err := parseTable(t)
		if err != nil {
			return nil, err
		}
		idents[i] = ident
	}
	return idents, nil
}

// CreatePublication makes a publication and says whether it made it. One that
// exists is left as it is; if it lacks one of the tables, or publishes
// partitions under their own names against what is wanted, that is
// ErrPublicationDiffers. One that publishes more than is wanted will do.
func (a *Admin) CreatePublication(ctx context.Context, name string, want Published) (created bool, err error) {
	idents, err := want.idents()
	if err != nil {
		return false, fmt.Errorf("create publication %q: %w", name, err)
	}
	err = a.with(ctx, fmt.Sprintf("create publication %q", name), func(conn *pgx.Conn) error {
		var exists bool
		if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_publication WHERE pubname = $1)`, name).Scan(&exists); err != nil {
			return err
		}
		if !exists {
			_, err := conn.Exec(ctx, publicationSQL(name, idents, want.ViaRoot))
			var pg *pgconn.PgError
			isPg := errors.As(err, &pg)
			switch {
			case err == nil:
				created = true
				return nil
			case isPg && pg.Code == "42501":
				return fmt.Errorf("the role needs CREATE on the database and has to own the tables (for all tables: be superuser); grant it that or have an administrator run the statement %s: %w", publicationSQL(name, idents, want.ViaRoot), err)
			case !isPg || pg.Code != "42710": // somebody else made it just now
				return err
			}
		}
		return lacks(ctx, conn, name, idents, want.ViaRoot)
	})
	return created, err
}

func publicationSQL(name string, tables []pgx.Identifier, viaRoot bool) string {
	sql := "CREATE PUBLICATION " + pgx.Identifier{name}.Sanitize() + " FOR "
	if len(tables) == 0 {
		sql += "ALL TABLES"
	} else {
		quoted := make([]string, len(tables))
		for i, t := range tables {
			quoted[i] = t.Sanitize()
		}
		sql += "TABLE " + strings.Join(quoted, ", ")
	}
	if viaRoot {
		sql += " WITH (publish_via_partition_root = true)"
	}
	return sql
}

// lacks is an error if an existing publication does not have one of the tables,
// or, where none are named, is not one of all tables. A partitioned table counts
// by itself, as it was named when it was added.
func lacks(ctx context.Context, conn *pgx.Conn, name string, tables []pgx.Identifier, viaRoot bool) error {
	var all, root bool
	if err := conn.QueryRow(ctx, `SELECT puballtables, pubviaroot FROM pg_catalog.pg_publication WHERE pubname = $1`, name).Scan(&all, &root); err != nil {
		return err
	}
	differs := func(what string, do string) error {
		return &Error{Kind: ErrPublicationDiffers, Text: fmt.Sprintf("it exists and %s: %s, or configure what it has", what, do)}
	}
	alter := "ALTER PUBLICATION " + pgx.Identifier{name}.Sanitize()
	if viaRoot && !root {
		return differs("publishes partitions under their own names", alter+" SET (publish_via_partition_root = true)")
	}
	if all {
		return nil
	}
	if len(tables) == 0 {
		return differs("is not one of all tables", "drop it and make it anew (an existing slot cannot be read across that)")
	}
	for _, t := range tables {
		var has bool
		err := conn.QueryRow(ctx, `SELECT EXISTS (
			SELECT FROM pg_catalog.pg_class c
			JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace AND n.nspname = $2 AND c.relname = $3
			JOIN pg_catalog.pg_publication p ON p.pubname = $1
			WHERE EXISTS (SELECT FROM pg_catalog.pg_publication_rel r WHERE r.prpubid = p.oid AND r.prrelid = c.oid)
			OR EXISTS (SELECT FROM pg_catalog.pg_publication_namespace s WHERE s.pnpubid = p.oid AND s.pnnspid = n.oid))`,
			name, t[0], t[1]).Scan(&has)
		if err != nil {
			return err
		}
		if !has {
			return differs("lacks the table "+t.Sanitize(), alter+" ADD TABLE "+t.Sanitize())
		}
	}
	return nil
}

// DropPublication drops a publication and says whether there was one.
func (a *Admin) DropPublication(ctx context.Context, name string) (dropped bool, err error) {
	err = a.with(ctx, fmt.Sprintf("drop publication %q", name), func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "DROP PUBLICATION "+pgx.Identifier{name}.Sanitize())
		var pg *pgconn.PgError
		if errors.As(err, &pg) && pg.Code == "42704" {
			return nil
		}
		dropped = err == nil
		return err
	})
	return dropped, err
}

// parseTable reads a table's name as SQL does: one or two identifiers with a dot
// between them.
func parseTable(s string) (pgx.Identifier, error) {
	bad := func() (pgx.Identifier, error) {
		return nil, fmt.Errorf("table %q: write schema.table, with double quotes around a name that is not all lower-case letters, digits and underscores", s)
	}
	var parts pgx.Identifier
	for rest := s; ; {
		var part string
		if quoted, ok := strings.CutPrefix(rest, `"`); ok {
			end := 0
			for {
				i := strings.IndexByte(quoted[end:], '"')
				if i < 0 {
					return bad()
				}
				end += i
				if !strings.HasPrefix(quoted[end:], `""`) {
					break
				}
				end += 2
			}
			part, rest = strings.ReplaceAll(quoted[:end], `""`, `"`), quoted[end+1:]
		} else {
			end := strings.IndexByte(rest, '.')
			if end < 0 {
				end = len(rest)
			}
			part, rest = strings.Map(fold, rest[:end]), rest[end:]
			if strings.ContainsAny(part, "\" \t\r\n;,()'") {
				return bad()
			}
		}
		if part == "" || strings.ContainsRune(part, 0) {
			return bad()
		}
		parts = append(parts, part)
		if rest == "" {
			break
		}
		if rest[0] != '.' {
			return bad()
		}
		rest = rest[1:]
	}
	switch len(parts) {
	case 1:
		return pgx.Identifier{"public", parts[0]}, nil
	case 2:
		return parts, nil
	}
	return bad()
}

// fold is what Postgres does to an identifier without quotes in UTF-8
// (downcase_identifier in src/backend/parser/scansup.c): ASCII only.
func fold(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + ('a' - 'A')
	}
	return r
}
