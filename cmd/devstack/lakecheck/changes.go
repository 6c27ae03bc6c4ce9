package lakecheck

import (
	"context"
	"database/sql"
	"strings"
)

// Changes has a line for each of the lake's rows, in stream order: operation,
// table, before and after, two spaces between them, with a dash for what is
// null, and at the end the columns that are unchanged, if any.
func (l *Lake) Changes(ctx context.Context) ([]string, error) {
	var lines []string
	err := l.query(ctx, "read the lake's rows", `
		select operation, coalesce("table", '-'), coalesce(before, '-'), coalesce(after, '-'), array_to_string(unchanged, ', ')
		from %s order by timeline, commit_lsn, ordinal`,
		func(rows *sql.Rows) error {
			var fields [5]string
			if err := rows.Scan(&fields[0], &fields[1], &fields[2], &fields[3], &fields[4]); err != nil {
				return err
			}
			line := strings.Join(fields[:4], "  ")
			if fields[4] != "" {
				line += "  unchanged " + fields[4]
			}
			lines = append(lines, line)
			return nil
		})
	return lines, err
}
