package load

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/tally"
)

// rows are the IDs that a session has rows of.
type rows struct {
	customers, orders []int64
	products          int
}

// work is what one transaction does.
type work struct {
	s      *session
	counts tally.Counts
	// added and removed become true with the COMMIT.
	added, removed rows
}

func newWork(s *session) *work { return &work{s: s, counts: tally.Counts{}} }

// keep: the transaction has committed.
func (w *work) keep() {
	w.s.live.customers = append(w.s.live.customers, w.added.customers...)
	w.s.live.orders = append(w.s.live.orders, w.added.orders...)
	w.s.live.products += w.added.products
}

// undo: it has not.
func (w *work) undo() {
	w.s.live.customers = append(w.s.live.customers, w.removed.customers...)
	w.s.live.orders = append(w.s.live.orders, w.removed.orders...)
}

// fill runs the statements of a transaction of a random size: mostly a few
// rows, now and then hundreds, seldom thousands.
func (w *work) fill(ctx context.Context, tx pgx.Tx) error {
	rng, largest := w.s.rng, w.s.load.cfg.Largest
	steps := 1 + rng.IntN(8)
	bulk := 0
	switch p := rng.IntN(200); {
	case p < 2:
		bulk = 1 + rng.IntN(largest)
	case p < 12:
		bulk = 1 + rng.IntN(min(300, largest))
	case p < 40:
		steps = min(100, largest)
	}
	if bulk > 0 {
		if err := w.copyEvents(ctx, tx, bulk); err != nil {
			return err
		}
	}
	for range steps {
		if err := w.step(ctx, tx); err != nil {
			return err
		}
	}
	if rng.IntN(100) < 8 {
		return errRollback
	}
	return nil
}

func (w *work) step(ctx context.Context, tx pgx.Tx) error {
	switch p := w.s.rng.IntN(100); {
	case p < 20 || len(w.s.live.customers) < 10:
		return w.insertCustomer(ctx, tx)
	case p < 45:
		return w.insertOrders(ctx, tx)
	case p < 60:
		return w.updateCustomer(ctx, tx)
	case p < 75:
		return w.updateOrders(ctx, tx)
	case p < 83:
		return w.deleteOrder(ctx, tx)
	case p < 85:
		return w.deleteCustomer(ctx, tx)
	case p < 95:
		return w.moveStock(ctx, tx)
	default:
		return w.changeOfMind(ctx, tx)
	}
}

// exec runs a statement and counts the rows that it changed.
func (w *work) exec(ctx context.Context, tx pgx.Tx, k tally.Kind, sql string, args ...any) error {
	tag, err := tx.Exec(ctx, sql, args...)
	if err != nil {
		return fmt.Errorf("%s of %s: %w", k.Operation, k.Table, err)
	}
	w.counts[k] += tag.RowsAffected()
	return nil
}

func (w *work) id() int64 {
	w.s.next++
	return w.s.base + w.s.next
}

func (w *work) insertCustomer(ctx context.Context, tx pgx.Tx) error {
	id := w.id()
	w.added.customers = append(w.added.customers, id)
	rng := w.s.rng
	var email, biography *string
	if rng.IntN(3) > 0 {
		e := fmt.Sprintf("c%d@example.com", id)
		email = &e
	}
	if rng.IntN(8) == 0 {
		b := fmt.Sprintf("%s %d", strings.Repeat("Grüße 漢字 \"quoted\" \\ tab\t ", 150), id)
		biography = &b
	}
	return w.exec(ctx, tx, tally.Kind{Table: customers, Operation: "insert"}, `
		insert into public.customers values ($1, $2, $3, ($4::bigint / 10000.0)::numeric(18,4), $5, $6, $7, clock_timestamp())`,
		id, fmt.Sprintf("Customer %d ☃", id), email, rng.Int64N(1e12), rng.IntN(2) == 0,
		fmt.Sprintf(`{"level": %d, "ratio": 0.10, "none": null}`, rng.IntN(100)), biography)
}

func (w *work) insertOrders(ctx context.Context, tx pgx.Tx) error {
	rng := w.s.rng
	n := 1 + rng.IntN(5)
	first := w.s.base + w.s.next + 1
	for range n {
		w.added.orders = append(w.added.orders, w.id())
	}
	return w.exec(ctx, tx, tally.Kind{Table: orders, Operation: "insert"}, `
		insert into public.orders
		select i, $3, 'new', (i % 100000)::numeric / 7, case when i % 3 = 0 then null else i * 0.1::float8 end,
			case when i % 2 = 0 then 'note ' || i end
		from generate_series($1::bigint, $2::bigint) i`,
		first, first+int64(n)-1, w.s.live.customers[rng.IntN(len(w.s.live.customers))])
}

func (w *work) updateCustomer(ctx context.Context, tx pgx.Tx) error {
	rng := w.s.rng
	// The biography stays as it is: a TOASTed value that pgoutput does not send.
	return w.exec(ctx, tx, tally.Kind{Table: customers, Operation: "update"},
		`update public.customers set balance = balance + 0.0001, active = not active where id = $1`,
		w.s.live.customers[rng.IntN(len(w.s.live.customers))])
}

func (w *work) updateOrders(ctx context.Context, tx pgx.Tx) error {
	if len(w.s.live.orders) == 0 {
		return nil
	}
	rng := w.s.rng
	from := w.s.live.orders[rng.IntN(len(w.s.live.orders))]
	return w.exec(ctx, tx, tally.Kind{Table: orders, Operation: "update"},
		`update public.orders set status = 'paid', total = total * 1.19 where id between $1 and $2`,
		from, from+int64(rng.IntN(20)))
}

func (w *work) deleteOrder(ctx context.Context, tx pgx.Tx) error {
	id, ok := take(w.s, &w.s.live.orders)
	if !ok {
		return nil
	}
	w.removed.orders = append(w.removed.orders, id)
	return w.exec(ctx, tx, tally.Kind{Table: orders, Operation: "delete"}, `delete from public.orders where id = $1`, id)
}

func (w *work) deleteCustomer(ctx context.Context, tx pgx.Tx) error {
	id, ok := take(w.s, &w.s.live.customers)
	if !ok {
		return nil
	}
	w.removed.customers = append(w.removed.customers, id)
	return w.exec(ctx, tx, tally.Kind{Table: customers, Operation: "delete"}, `delete from public.customers where id = $1`, id)
}

// moveStock updates many rows of a table with a full replica identity, and
// changes a primary key.
func (w *work) moveStock(ctx context.Context, tx pgx.Tx) error {
	if w.s.live.products+w.added.products < 50 {
		product := w.s.live.products + w.added.products
		w.added.products++
		return w.exec(ctx, tx, tally.Kind{Table: stock, Operation: "insert"},
			`insert into public.stock values ($1, $2, 100)`, w.s.base, product)
	}
	update := tally.Kind{Table: stock, Operation: "update"}
	if w.s.rng.IntN(4) == 0 {
		return w.exec(ctx, tx, update, `update public.stock set product = -product - 1 where warehouse = $1 and product in ($2::integer, -$2::integer - 1)`,
			w.s.base, w.s.rng.IntN(50))
	}
	return w.exec(ctx, tx, update, `update public.stock set quantity = quantity - 1 where warehouse = $1 and product % 5 = 0`, w.s.base)
}

// changeOfMind writes rows below a savepoint and takes them back: they are not
// counted, because nobody is ever to see them.
func (w *work) changeOfMind(ctx context.Context, tx pgx.Tx) error {
	sub, err := tx.Begin(ctx)
	if err != nil {
		return fmt.Errorf("set a savepoint: %w", err)
	}
	if _, err := sub.Exec(ctx, `insert into public.events select i, 'never', repeat('x', 100) from generate_series($1::bigint, $1::bigint + 20) i`, w.id()); err != nil {
		return fmt.Errorf("insert below a savepoint: %w", err)
	}
	w.s.next += 20
	if err := sub.Rollback(ctx); err != nil {
		return fmt.Errorf("roll back to a savepoint: %w", err)
	}
	return nil
}

func (w *work) copyEvents(ctx context.Context, tx pgx.Tx, n int) error {
	first := w.s.base + w.s.next + 1
	w.s.next += int64(n)
	k := tally.Kind{Table: events, Operation: "insert"}
	done, err := tx.CopyFrom(ctx, pgx.Identifier{"public", "events"}, []string{"id", "kind", "payload"},
		pgx.CopyFromSlice(n, func(i int) ([]any, error) {
			return []any{first + int64(i), "copied", fmt.Sprintf("line %d\twith\n\"special\" \\ characters", i)}, nil
		}))
	if err != nil {
		return fmt.Errorf("copy to %s: %w", events, err)
	}
	w.counts[k] += done
	return nil
}

// take removes a random ID from list.
func take(s *session, list *[]int64) (int64, bool) {
	l := *list
	if len(l) == 0 {
		return 0, false
	}
	i := s.rng.IntN(len(l))
	id := l[i]
	l[i] = l[len(l)-1]
	*list = l[:len(l)-1]
	return id, true
}
