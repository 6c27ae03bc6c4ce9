package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
)

// writerTables are those that a Writer writes to: one with a primary key and
// values that are TOASTed, one with a full replica identity.
const writerTables = `
	create schema chaos;
	create table chaos.items (
		id bigint primary key, body text not null, amount numeric(20,4), weight double precision,
		active boolean, doc jsonb, large text
	);
	alter table chaos.items alter column large set storage external;
	create table chaos.notes (id bigint, body text, at timestamptz);
	alter table chaos.notes replica identity full;`

// Shape is a kind of transaction.
type Shape struct {
	Name string
	// commit runs one of about n changes.
	commit func(w *Writer, ctx context.Context, n int) error
}

// Writer commits transactions of every shape to the tables of writerTables. It
// keeps no count: what was committed is for the Truth to say. So a transaction
// that fails because a server is away is no error of its.
type Writer struct {
	url  string
	rng  *rand.Rand
	next int64 // the greatest ID used
	ddl  int
}

func newWriter(r *Run, seed uint64) *Writer {
	return &Writer{url: r.world.url(r.database, false), rng: rand.New(rand.NewPCG(seed, 1))}
}

// shapes are all there are.
func shapes() []Shape {
	return []Shape{
		{"insert", func(w *Writer, ctx context.Context, n int) error { return w.one(ctx, w.insert(n)) }},
		{"mixed", func(w *Writer, ctx context.Context, n int) error {
			return w.one(ctx, w.insert(n/2+1), w.update(n), w.note(n/4+1), w.remove(n/4+1))
		}},
		{"single rows", (*Writer).singles},
		{"nothing", func(w *Writer, ctx context.Context, _ int) error {
			return w.one(ctx, "select pg_current_xact_id()")
		}},
		{"rolled back", func(w *Writer, ctx context.Context, n int) error {
			return w.one(ctx, w.insert(n), "rollback")
		}},
		{"savepoints", func(w *Writer, ctx context.Context, n int) error {
			return w.one(ctx, w.insert(n/3+1), "savepoint a", w.insert(n/3+1), w.update(n), "savepoint b", w.note(n/3+1),
				"rollback to b", "rollback to a", w.insert(n/3+1), "savepoint c", w.update(n/2+1), "release c")
		}},
		{"interleaved", (*Writer).interleaved},
		{"DDL", (*Writer).alter},
		{"truncate", func(w *Writer, ctx context.Context, n int) error {
			what := "chaos.items"
			if w.rng.IntN(2) == 0 {
				what += ", chaos.notes"
			}
			return w.one(ctx, w.insert(n/2+1), "truncate "+what, w.insert(n/2+1))
		}},
		{"message", func(w *Writer, ctx context.Context, n int) error {
			return w.one(ctx, w.insert(n/2+1), w.message(true), w.update(n), w.message(true))
		}},
		{"message alone", func(w *Writer, ctx context.Context, n int) error {
			return w.one(ctx, w.insert(n/2+1), w.message(false), w.insert(1))
		}},
	}
}

// one runs statements in one transaction.
func (w *Writer) one(ctx context.Context, statements ...string) error {
	conn, err := pgx.Connect(ctx, w.url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return run(ctx, conn, append(append([]string{"begin"}, statements...), "commit")...)
}

// singles are n transactions of a row each.
func (w *Writer) singles(ctx context.Context, n int) error {
	conn, err := pgx.Connect(ctx, w.url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for range min(n, 200) {
		if err := run(ctx, conn, w.insert(1)); err != nil {
			return err
		}
	}
	return nil
}

// interleaved are transactions that write in turns and are then committed, or
// rolled back, one right after the other, in another order than they began in.
func (w *Writer) interleaved(ctx context.Context, n int) error {
	const sessions = 3
	conns := make([]*pgx.Conn, 0, sessions)
	for range sessions {
		conn, err := pgx.Connect(ctx, w.url)
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(ctx))
		if err := run(ctx, conn, "begin"); err != nil {
			return err
		}
		conns = append(conns, conn)
	}
	for range 3 {
		for _, c := range conns {
			if err := run(ctx, c, w.insert(n/9+1)); err != nil {
				return err
			}
		}
	}
	w.rng.Shuffle(sessions, func(i, j int) { conns[i], conns[j] = conns[j], conns[i] })
	for _, c := range conns {
		end := "commit"
		if w.rng.IntN(5) == 0 {
			end = "rollback"
		}
		if err := run(ctx, c, end); err != nil {
			return err
		}
	}
	return nil
}

// alter changes the columns of chaos.items between writes to it, in one
// transaction.
func (w *Writer) alter(ctx context.Context, n int) error {
	w.ddl++
	var change string
	switch w.ddl % 4 {
	case 1:
		change = fmt.Sprintf("alter table chaos.items add column extra%d text default 'it is %d'", w.ddl, w.ddl)
	case 2:
		change = "alter table chaos.items alter column amount type numeric(24,6), alter column weight type text using weight::text"
	case 3:
		change = withExtra(fmt.Sprintf("rename column %%I to extra%d_renamed", w.ddl))
	default:
		change = withExtra("drop column %I") + "; alter table chaos.items alter column weight type double precision using weight::float8, alter column amount type numeric(20,4)"
	}
	return w.one(ctx, w.insert(n/3+1), change, w.insert(n/3+1), w.update(n/3+1))
}

// withExtra alters chaos.items in a way that names one of the columns that alter
// has added, if there is one.
func withExtra(how string) string {
	return `do $$ declare c text; begin
		select attname into c from pg_attribute
		where attrelid = 'chaos.items'::regclass and attname ~ '^extra' and not attisdropped limit 1;
		if c is not null then execute format('alter table chaos.items ` + how + `', c); end if; end $$`
}

func (w *Writer) insert(n int) string {
	first := w.next + 1
	w.next += int64(n)
	large := "null"
	if w.rng.IntN(4) == 0 {
		large = "case when i % 50 = 1 then repeat(md5(i::text), 100) end"
	}
	return fmt.Sprintf(`insert into chaos.items (id, body, amount, weight, active, doc, large)
		select i, 'row '||i||' ''quoted'' "ü" '||repeat('x', (i %% 37)::int), i::numeric / 7, i * 0.1::float8, i %% 3 = 0,
			case when i %% 2 = 0 then jsonb_build_object('i', i, 't', 'a "b"') end, %s
		from generate_series(%d::bigint, %d::bigint) i`, large, first, w.next)
}

func (w *Writer) update(n int) string {
	from := w.some(n)
	return fmt.Sprintf(`update chaos.items set body = body || '+', amount = amount + 0.0001, active = not active where id between %d and %d`, from, from+int64(n)-1)
}

func (w *Writer) remove(n int) string {
	from := w.some(n)
	return fmt.Sprintf(`delete from chaos.items where id between %d and %d`, from, from+int64(n)-1)
}

// note writes to the table without a key: rows come, change and go.
func (w *Writer) note(n int) string {
	first := w.next + 1
	w.next += int64(n)
	return fmt.Sprintf(`with added as (insert into chaos.notes select i, 'note '||i, now() from generate_series(%d::bigint, %d::bigint) i)
		, gone as (delete from chaos.notes where id %% 10 = 3 and id < %d)
		update chaos.notes set body = body || '!' where id %% 10 = 7 and id < %d and id > %d`, first, w.next, first, first, first-50)
}

func (w *Writer) message(transactional bool) string {
	return fmt.Sprintf("select pg_logical_emit_message(%v, 'chaos', 'message after row %d')", transactional, w.next)
}

// some is an ID not far below the greatest.
func (w *Writer) some(n int) int64 {
	return max(1, w.next-w.rng.Int64N(int64(2*n)+1)-int64(n))
}

func run(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	for _, s := range statements {
		if _, err := conn.PgConn().Exec(ctx, s).ReadAll(); err != nil {
			return fmt.Errorf("%.60s: %w", s, err)
		}
		if s == "rollback" {
			return nil
		}
	}
	return nil
}

// writeBound is how long a transaction may take before it is given up; a server
// that was stopped in between does not answer it.
const writeBound = 30 * time.Second

// Commit runs one transaction of a shape. Its error is for a log only.
func (w *Writer) Commit(ctx context.Context, s Shape, n int) error {
	ctx, cancel := context.WithTimeout(ctx, writeBound)
	defer cancel()
	if err := s.commit(w, ctx, n); err != nil {
		return fmt.Errorf("%s of %d: %w", s.Name, n, err)
	}
	return nil
}

// Shapes are the names of all shapes.
func Shapes() []string {
	var names []string
	for _, s := range shapes() {
		names = append(names, s.Name)
	}
	return names
}
