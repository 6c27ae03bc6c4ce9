package bench

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// shape is a kind of changes that a backlog has. Its table bench.<name> is in a
// publication of its own, and the procedure bench.fill writes it.
type shape string

const (
	// narrow rows are inserts of five columns; a row's message has about 120 bytes.
	narrow shape = "narrow"
	// full rows are updates of such rows with REPLICA IDENTITY FULL.
	full shape = "full"
	// wide rows are inserts of 40 columns with 2 KB.
	wide shape = "wide"
)

func (s shape) table() string       { return "bench." + string(s) }
func (s shape) publication() string { return "bench_" + string(s) }

// fullRows is how many rows the table full has.
const fullRows = 10_000

// createTables makes the tables and what writes them.
func (b *bench) createTables(ctx context.Context) error {
	_, err := b.conn.Exec(ctx, fmt.Sprintf(`
		create schema bench;
		create table bench.narrow (id bigint primary key, customer integer not null, amount numeric(12,2) not null,
			note text not null, at timestamptz not null);
		create table bench.full (like bench.narrow including all);
		alter table bench.full replica identity full;
		create sequence bench.ids cache 1000;
		do $$ begin
			execute 'create table bench.wide (id bigint primary key, ' ||
				(select string_agg(format('c%%s text not null', i), ', ') from generate_series(1, 39) i) || ')';
		end $$;
		insert into bench.full select i, i %% 10007, i * 0.01, md5(i::text), now() from generate_series(1, %[1]d) i;

		create function bench.narrow(n integer, width integer) returns void language sql as $$
			insert into bench.narrow select nextval('bench.ids'), i %% 10007, i * 0.01, repeat(md5(i::text), 1 + width / 32), now()
			from generate_series(1, n) i $$;
		create function bench.full(n integer, width integer) returns void language plpgsql as $$
			declare k bigint := (nextval('bench.ids') * n) %% %[1]d;
			begin
				update bench.full set amount = amount + 1, at = now() where id > k and id <= k + n;
			end $$;
		do $$ begin
			execute 'create function bench.wide(n integer, width integer) returns void language sql as $f$
				insert into bench.wide select nextval(''bench.ids''), ' ||
				(select string_agg(format('repeat(md5((i * %%s)::text), 2)', i), ', ') from generate_series(1, 39) i) ||
				' from generate_series(1, n) i $f$';
		end $$;
		create procedure bench.fill(kind text, n integer, per integer, width integer, inout inside pg_lsn) language plpgsql as $$
			begin
				for i in 1 .. n / per loop
					case kind
						when 'narrow' then perform bench.narrow(per, width);
						when 'full' then perform bench.full(per, width);
						when 'wide' then perform bench.wide(per, width);
					end case;
					inside := pg_current_wal_insert_lsn();
					commit;
				end loop;
			end $$;
		set synchronous_commit = off;`, fullRows))
	if err != nil {
		return fmt.Errorf("make the tables: %w", err)
	}
	return nil
}

// fill commits so many changes in transactions of per each; the notes of narrow
// ones have about width bytes. It gives a position inside the last transaction,
// after its last row: an ack at or above it covers everything.
func (b *bench) fill(ctx context.Context, of shape, rows, per, width int) (inside string, err error) {
	return b.call(ctx, fmt.Sprintf("call bench.fill('%s', %d, %d, %d, null)", of, rows, per, width))
}

// call calls a procedure that writes a backlog and gives a position inside its
// last transaction, and has all of that sent.
func (b *bench) call(ctx context.Context, call string) (inside string, err error) {
	// By the simple protocol, in which a procedure may commit for certain.
	if err := b.conn.QueryRow(ctx, call, pgx.QueryExecModeSimpleProtocol).Scan(&inside); err != nil {
		return "", fmt.Errorf("write the backlog: %w", err)
	}
	// Walsenders send what is flushed, which a synchronous commit sees to.
	if _, err = b.conn.Exec(ctx, "begin; set local synchronous_commit = on; select txid_current(); commit"); err != nil {
		return "", fmt.Errorf("flush the log: %w", err)
	}
	return inside, nil
}
