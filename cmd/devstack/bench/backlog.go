package bench

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const (
	table       = "bench.rows"
	publication = "bench"
)

// createTable makes the table of five columns that every scenario writes to. A
// row's message has about 120 bytes.
func (b *bench) createTable(ctx context.Context) error {
	_, err := b.conn.Exec(ctx, `
		create schema bench;
		create table bench.rows (id bigint primary key, customer integer not null, amount numeric(12,2) not null,
			note text not null, at timestamptz not null);
		create sequence bench.ids cache 1000;
		create function bench.add(n integer, width integer) returns void language sql as $$
			insert into bench.rows select nextval('bench.ids'), i % 10007, i * 0.01, repeat(md5(i::text), 1 + width / 32), now()
			from generate_series(1, n) i $$;
		create procedure bench.fill(n integer, per integer, width integer, inout inside pg_lsn) language plpgsql as $$
			begin
				for i in 1 .. n / per loop
					perform bench.add(per, width);
					inside := pg_current_wal_insert_lsn();
					commit;
				end loop;
			end $$;
		set synchronous_commit = off;`)
	if err != nil {
		return fmt.Errorf("make the table: %w", err)
	}
	return nil
}

// fill commits inserts in transactions of per each, with notes of about width
// bytes. It gives a position inside the last transaction, after its last row: an
// ack at or above it covers everything.
func (b *bench) fill(ctx context.Context, rows, per, width int) (inside string, err error) {
	call := fmt.Sprintf("call bench.fill(%d, %d, %d, null)", rows, per, width)
	// By the simple protocol, in which a procedure may commit for certain.
	if err := b.conn.QueryRow(ctx, call, pgx.QueryExecModeSimpleProtocol).Scan(&inside); err != nil {
		return "", fmt.Errorf("write the backlog: %w", err)
	}
	// Walsenders send what is flushed, which a synchronous commit sees to.
	_, err = b.conn.Exec(ctx, "begin; set local synchronous_commit = on; select txid_current(); commit")
	if err != nil {
		return "", fmt.Errorf("flush the log: %w", err)
	}
	return inside, nil
}
