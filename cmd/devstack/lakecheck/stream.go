package lakecheck

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"strings"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// Row is a row of the lake. Table is empty for a logical message, Before and
// After where there is no image.
type Row struct {
	Position      change.Position
	XID           int64
	Operation     string
	Table         string
	Before, After string
	Unchanged     []string
}

// Stream gives the lake's rows in stream order, one at a time, and what ends
// it. When it is over *failed says whether it was because of an error.
func (l *Lake) Stream(ctx context.Context, failed *error) (next func() (Row, bool), stop func()) {
	return iter.Pull(func(yield func(Row) bool) {
		*failed = l.query(ctx, "read the lake's rows", `
			select timeline, commit_lsn, ordinal, xid, operation, coalesce("table", ''), coalesce(before, ''), coalesce(after, ''),
				array_to_string(unchanged, chr(31))
			from %s order by timeline, commit_lsn, ordinal`,
			func(rows *sql.Rows) error {
				var r Row
				var timeline, unchanged string
				var lsn, ordinal int64
				if err := rows.Scan(&timeline, &lsn, &ordinal, &r.XID, &r.Operation, &r.Table, &r.Before, &r.After, &unchanged); err != nil {
					return err
				}
				p, err := change.ParsePosition(fmt.Sprintf("%s-%016X-%010X", timeline, lsn, ordinal))
				if err != nil {
					return err
				}
				r.Position = p
				if unchanged != "" {
					r.Unchanged = strings.Split(unchanged, "\x1f")
				}
				if !yield(r) {
					return context.Canceled
				}
				return nil
			})
	})
}

// Disordered has a line for each file whose rows are not in stream order, up to
// 20.
func (l *Lake) Disordered(ctx context.Context) ([]string, error) {
	var lines []string
	err := l.query(ctx, "look for rows out of order", `
		select filename, count(*) from (
			select filename, (commit_lsn, ordinal) <= lag((commit_lsn, ordinal)) over (partition by filename order by file_row_number) as back
			from %s) where back group by filename order by filename limit 20`,
		func(rows *sql.Rows) error {
			var file string
			var n int64
			if err := rows.Scan(&file, &n); err != nil {
				return err
			}
			lines = append(lines, fmt.Sprintf("%s has %d rows that stand before the row above them", file, n))
			return nil
		})
	return lines, err
}
