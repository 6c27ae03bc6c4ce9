package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// Truth is what Postgres says was committed: everything that a second slot
// gives, with Postgres' own plugin test_decoding, in commit order. It shares no
// code with Tidemark: another plugin, another text form, no replication
// connection. It is kept in a file.
type Truth struct {
	url, slot string

	mu   sync.Mutex
	file *os.File
	out  *bufio.Writer
	// end is the end of the last transaction that the file has: what comes again
	// after a restart of Postgres is left out.
	end  change.LSN
	rows int64
}

// newTruth makes the slot; what is committed from now on is the truth's.
func newTruth(ctx context.Context, url, slot, path string) (*Truth, error) {
	conn, err := dial(ctx, url)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "select pg_create_logical_replication_slot($1, 'test_decoding')", slot); err != nil {
		return nil, fmt.Errorf("make the slot of the truth: %w", err)
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &Truth{url: url, slot: slot, file: f, out: bufio.NewWriterSize(f, 1<<16)}, nil
}

func (t *Truth) close() { t.file.Close() }

// Rows counts the changes that are known to be committed.
func (t *Truth) Rows() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rows
}

// chunk is about how many changes are read at once. Postgres rounds up to whole
// transactions.
const chunk = 20000

// read takes what has been committed since. It may fail at any point, when
// Postgres is stopped, and is then called again. The slot is moved on only when
// all is written down.
func (t *Truth) read(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	conn, err := pgx.Connect(ctx, t.url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for {
		n, err := t.readChunk(ctx, conn)
		if err != nil {
			return fmt.Errorf("read the truth: %w", err)
		}
		if n == 0 {
			return t.out.Flush()
		}
	}
}

func (t *Truth) readChunk(ctx context.Context, conn *pgx.Conn) (n int, err error) {
	rows, err := conn.Query(ctx, `select lsn::text, xid::text, data from pg_logical_slot_peek_changes($1, null, $2,
		'skip-empty-xacts', '1', 'include-xids', '0')`, t.slot, chunk)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var pending []string // of the transaction that is open
	last := t.end
	for rows.Next() {
		var lsn, xid, data string
		if err := rows.Scan(&lsn, &xid, &data); err != nil {
			return n, err
		}
		n++
		at, err := change.ParseLSN(lsn)
		if err != nil {
			return n, err
		}
		// A message in no transaction comes at once, under the ID of the one that
		// was open when it was sent.
		alone := strings.HasPrefix(data, "message: transactional: 0 ")
		if alone {
			xid, pending = "0", pending[:0]
		}
		switch {
		case data == "BEGIN":
			pending = pending[:0]
			continue
		case data != "COMMIT":
			pending = append(pending, data)
			if !alone {
				continue
			}
		}
		last = max(last, at)
		if at > t.end {
			for _, p := range pending {
				fmt.Fprintf(t.out, "%d %s %s\n", uint64(at), xid, strconv.Quote(p))
			}
			t.rows += int64(len(pending))
			t.end = at
		}
		pending = pending[:0]
	}
	if rows.Err() != nil || n == 0 {
		return n, rows.Err()
	}
	if err := t.out.Flush(); err != nil {
		return n, err
	}
	_, err = conn.Exec(ctx, "select pg_replication_slot_advance($1, $2::text::pg_lsn)", t.slot, last.String())
	return n, err
}

// truthRow is a change of the truth. A TRUNCATE of several tables is one for
// each of them.
type truthRow struct {
	end  change.LSN // of the transaction; of a message in none, its own LSN
	xid  int64
	data decoded
}

// each calls f for every change, in commit order.
func (t *Truth) each(f func(truthRow) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := t.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	in := bufio.NewReaderSize(t.file, 1<<16)
	for {
		line, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) {
			_, err = t.file.Seek(0, io.SeekEnd)
			return err
		}
		if err != nil {
			return err
		}
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
		end, err1 := strconv.ParseUint(parts[0], 10, 64)
		xid, err2 := strconv.ParseInt(parts[1], 10, 64)
		data, err3 := strconv.Unquote(parts[2])
		if err := errors.Join(err1, err2, err3); err != nil {
			return fmt.Errorf("read the truth's file: %w", err)
		}
		all, err := decode(data)
		if err != nil {
			return err
		}
		for _, d := range all {
			if err := f(truthRow{end: change.LSN(end), xid: xid, data: d}); err != nil {
				return err
			}
		}
	}
}
