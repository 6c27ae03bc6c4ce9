package load

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// The tables that a load writes to, as the lake names them.
const (
	customers = "public.customers"
	orders    = "public.orders"
	events    = "public.events"
	stock     = "public.stock"
)

// Tables are all that Create makes.
func Tables() []string { return []string{customers, events, orders, stock} }

// Create makes the tables, empty. They have each replica identity that matters:
// the primary key's default, a full one, and values large enough to be TOASTed.
func Create(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("create the load's tables: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, `
		create table public.customers (
			id bigint primary key,
			name text not null,
			email text,
			balance numeric(18,4) not null,
			active boolean not null,
			profile jsonb,
			biography text,
			created_at timestamptz not null
		);
		alter table public.customers alter column biography set storage external;
		create table public.orders (
			id bigint primary key,
			customer_id bigint not null,
			status text not null,
			total numeric not null,
			discount double precision,
			note text
		);
		create table public.events (
			id bigint primary key,
			kind text not null,
			payload text
		);
		create table public.stock (
			warehouse bigint,
			product integer,
			quantity integer not null,
			primary key (warehouse, product)
		);
		alter table public.stock replica identity full;`)
	if err != nil {
		return fmt.Errorf("create the load's tables: %w", err)
	}
	return nil
}
