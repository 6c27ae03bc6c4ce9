package replication

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestASlotThatIsBeingMadeNamesWhatItWaitsFor(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		name := "waits_" + d.name
		if w, err := d.admin.SlotWaits(t.Context(), name); err != nil || len(w) > 0 {
			t.Fatalf("a slot that nobody makes waits for %v, %v", w, err)
		}
		holder, err := pgx.Connect(t.Context(), d.url)
		if err != nil {
			t.Fatal(err)
		}
		defer holder.Close(context.Background())
		execute(t, holder, "BEGIN", "SELECT pg_current_xact_id()")
		made := make(chan error, 1)
		go func() {
			_, err := d.admin.CreateSlot(t.Context(), name, false)
			made <- err
		}()
		// Other tests use the server too.
		eventually(t, "the slot waits for the transaction", func() bool {
			waits, err := d.admin.SlotWaits(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			return slices.ContainsFunc(waits, func(w Transaction) bool {
				return w.PID == holder.PgConn().PID() && w.User != "" && w.Open > 0 && w.Open < bound
			})
		})
		execute(t, holder, "COMMIT")
		if err := <-made; err != nil {
			t.Fatal(err)
		}
		if w, err := d.admin.SlotWaits(t.Context(), name); err != nil || len(w) > 0 {
			t.Errorf("the slot that was made waits for %v, %v", w, err)
		}
		if _, err := d.admin.DropSlot(t.Context(), name); err != nil {
			t.Error(err)
		}
	})
}

func TestASlotThatIsNotWaitedForAnyMoreIsNotMade(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		name := "broken_" + d.name
		holder, err := pgx.Connect(t.Context(), d.url)
		if err != nil {
			t.Fatal(err)
		}
		defer holder.Close(context.Background())
		execute(t, holder, "BEGIN", "SELECT pg_current_xact_id()")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		made := make(chan error, 1)
		go func() {
			_, err := d.admin.CreateSlot(ctx, name, false)
			made <- err
		}()
		eventually(t, "the slot waits for the transaction", func() bool {
			waits, err := d.admin.SlotWaits(t.Context(), name)
			return err == nil && len(waits) > 0
		})
		cancel()
		if err := <-made; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		// A process that ends now leaves nothing behind.
		if n := ask[int](t, d.conn, "SELECT count(*)::int FROM pg_replication_slots WHERE slot_name = $1", name); n != 0 {
			t.Error("the server still makes the slot")
		}
		execute(t, holder, "COMMIT")
	})
}

func TestATransactionIsNamedForPeople(t *testing.T) {
	for want, tx := range map[string]Transaction{
		"the transaction of process 7 of app, open for 2h0m0s": {PID: 7, User: "app", Open: 2*time.Hour + time.Millisecond},
		"the transaction of process 7":                         {PID: 7},
		"a prepared transaction (pg_prepared_xacts)":           {},
	} {
		if got := tx.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
