package lakecheck

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/duckdb/duckdb-go/v2" // the driver

	"github.com/tidemark-cdc/tidemark/cmd/devstack/tally"
)

// Lake is a lake's folder, seen through DuckDB. Each call sees the files that
// are there at that moment.
type Lake struct {
	db     *sql.DB
	folder string
}

// Open returns the lake whose prefix is folder: the folder that holds the
// years.
func Open(folder string) (*Lake, error) {
	db, err := sql.Open("duckdb", "")
	if err != nil {
		return nil, fmt.Errorf("open DuckDB: %w", err)
	}
	// One connection, so that the settings hold for every statement.
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("set timezone = 'UTC'; set memory_limit = '2GB'; set threads = 2"); err != nil {
		db.Close()
		return nil, fmt.Errorf("open DuckDB: %w", err)
	}
	return &Lake{db: db, folder: folder}, nil
}

// Close closes DuckDB.
func (l *Lake) Close() error { return l.db.Close() }

// Folder is the lake's.
func (l *Lake) Folder() string { return l.folder }

// Files are the paths of the segments' objects, in stream order of each day.
func (l *Lake) Files() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(l.folder, "[0-9]*", "*", "*", "*.parquet"))
	if err != nil {
		return nil, fmt.Errorf("list the lake's files: %w", err)
	}
	return files, nil
}

// Quarantined are the paths of the quarantined segments' files.
func (l *Lake) Quarantined() ([]string, error) {
	return filepath.Glob(filepath.Join(l.folder, "_quarantine", "*", "*", "*", "*.parquet"))
}

// QuarantinedMessages are the raw messages in quarantine, in stream order.
func (l *Lake) QuarantinedMessages(ctx context.Context) ([][]byte, error) {
	const what = "read the messages in quarantine"
	files, err := l.Quarantined()
	if err != nil || len(files) == 0 {
		return nil, err
	}
	for i, f := range files {
		files[i] = quote(f)
	}
	rows, err := l.db.QueryContext(ctx, fmt.Sprintf("select message from read_parquet([%s]) order by position", strings.Join(files, ", ")))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	defer rows.Close()
	var messages [][]byte
	for rows.Next() {
		var m []byte
		if err := rows.Scan(&m); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		messages = append(messages, m)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return messages, nil
}

// source is the lake's rows as a relation for a FROM clause: the columns of the
// files and, from their names, timeline and day (YYYY/MM/DD). Empty when there
// are no files, which DuckDB takes for a mistake.
func (l *Lake) source() (string, error) {
	files, err := l.Files()
	if err != nil || len(files) == 0 {
		return "", err
	}
	glob := filepath.Join(l.folder, "[0-9]*", "*", "*", "*.parquet")
	return fmt.Sprintf(`(select *,
		regexp_extract(filename, '/([0-9A-F]{8})-[0-9A-F]{16}-[0-9A-F]{10}_[^/]*$', 1) as timeline,
		regexp_extract(filename, '([0-9]{4}/[0-9]{2}/[0-9]{2})/[^/]*$', 1) as day
		from read_parquet(%s, filename = true, file_row_number = true)) lake`, quote(glob)), nil
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// query runs a statement in which %s stands for the lake's rows, and calls row
// for each result. With an empty lake there are no results.
func (l *Lake) query(ctx context.Context, what, statement string, row func(*sql.Rows) error, args ...any) error {
	source, err := l.source()
	if err != nil || source == "" {
		return err
	}
	rows, err := l.db.QueryContext(ctx, fmt.Sprintf(statement, source), args...)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Rows counts the lake's rows. Logical messages have no table.
func (l *Lake) Rows(ctx context.Context) (tally.Counts, error) {
	counts := tally.Counts{}
	err := l.query(ctx, "count the lake's rows",
		`select coalesce("table", ''), operation, count(*) from %s group by all`,
		func(rows *sql.Rows) error {
			var k tally.Kind
			var n int64
			if err := rows.Scan(&k.Table, &k.Operation, &n); err != nil {
				return err
			}
			counts[k] = n
			return nil
		})
	return counts, err
}

// Repeated has a line for each position that the lake has more than once, up to
// 20.
func (l *Lake) Repeated(ctx context.Context) ([]string, error) {
	var lines []string
	err := l.query(ctx, "look for repeated positions", `
		select timeline, commit_lsn, ordinal, count(*), string_agg(distinct filename, ' and ')
		from %s group by timeline, commit_lsn, ordinal having count(*) > 1
		order by 1, 2, 3 limit 20`,
		func(rows *sql.Rows) error {
			var timeline, files string
			var lsn, ordinal, n int64
			if err := rows.Scan(&timeline, &lsn, &ordinal, &n, &files); err != nil {
				return err
			}
			lines = append(lines, fmt.Sprintf("position %s-%016X-%010X is there %d times, in %s", timeline, lsn, ordinal, n, files))
			return nil
		})
	return lines, err
}

// Misplaced has a line for each file with a row that was committed on another
// UTC day than its folder says, up to 20.
func (l *Lake) Misplaced(ctx context.Context) ([]string, error) {
	var lines []string
	err := l.query(ctx, "look for misplaced rows", `
		select filename, count(*) from %s
		where strftime(commit_time at time zone 'UTC', '%%Y/%%m/%%d') <> day
		group by filename order by filename limit 20`,
		func(rows *sql.Rows) error {
			var file string
			var n int64
			if err := rows.Scan(&file, &n); err != nil {
				return err
			}
			lines = append(lines, fmt.Sprintf("%s has %d rows of another day", file, n))
			return nil
		})
	return lines, err
}

// Day is what a day's folder holds.
type Day struct {
	// Day is YYYY/MM/DD.
	Day         string
	Files       int
	Rows, Bytes int64
}

// Days are the days that have files, in order.
func (l *Lake) Days(ctx context.Context) ([]Day, error) {
	var days []Day
	err := l.query(ctx, "count the lake's days",
		`select day, count(distinct filename), count(*) from %s group by day order by day`,
		func(rows *sql.Rows) error {
			var d Day
			if err := rows.Scan(&d.Day, &d.Files, &d.Rows); err != nil {
				return err
			}
			days = append(days, d)
			return nil
		})
	if err != nil {
		return nil, err
	}
	for i := range days {
		if days[i].Bytes, err = folderBytes(filepath.Join(l.folder, days[i].Day)); err != nil {
			return nil, err
		}
	}
	return days, nil
}

// Arrival is how many rows of one commit came with one object, and when a
// streamer had received them.
type Arrival struct {
	// Object is the file's path.
	Object              string
	Committed, Received time.Time
	Rows                int64
}

// Arrivals lists when the lake's rows were committed and received, by object.
func (l *Lake) Arrivals(ctx context.Context) ([]Arrival, error) {
	var all []Arrival
	err := l.query(ctx, "read when rows arrived", `
		select filename, epoch_us(commit_time), epoch_us("timestamp"), count(*) from %s group by all order by all`,
		func(rows *sql.Rows) error {
			var a Arrival
			var committed, received int64
			if err := rows.Scan(&a.Object, &committed, &received, &a.Rows); err != nil {
				return err
			}
			a.Committed, a.Received = time.UnixMicro(committed), time.UnixMicro(received)
			all = append(all, a)
			return nil
		})
	return all, err
}

// Query runs a statement in which %s stands for the lake's rows, and returns
// the results as an aligned table. For people.
func (l *Lake) Query(ctx context.Context, statement string, args ...any) (string, error) {
	return l.table(ctx, statement, args...)
}
