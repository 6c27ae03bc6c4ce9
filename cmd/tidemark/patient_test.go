package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// slowSlots is a server on which a transaction is open for long.
type slowSlots struct {
	takes time.Duration
	waits []replication.Transaction
}

func (s slowSlots) CreateSlot(context.Context, string, bool) (change.LSN, error) {
	time.Sleep(s.takes)
	return 0x100, nil
}

func (s slowSlots) SlotWaits(context.Context, string) ([]replication.Transaction, error) {
	return s.waits, nil
}

func TestASlotThatTakesLongSaysWhatItWaitsFor(t *testing.T) {
	for name, tc := range map[string]struct {
		slots slowSlots
		want  string
	}{
		"at once":       {slowSlots{1900 * time.Millisecond, nil}, ""},
		"slow":          {slowSlots{5 * time.Second, nil}, `tidemark: making the replication slot "s" (2s)` + "\n"},
		"a transaction": {slowSlots{3 * time.Second, []replication.Transaction{{PID: 7, User: "app", Open: time.Hour}, {PID: 8}}}, "Postgres waits for the transaction of process 7 of app, open for 1h0m0s to end (2s)\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sys, out := testConsole(false)
				p := sys.progress()
				start, err := makeSlot(t.Context(), tc.slots, p, "s", false)
				p.end()
				if start != 0x100 || err != nil {
					t.Errorf("got %s, %v", start, err)
				}
				if tc.want == "" && out.Len() > 0 {
					t.Errorf("said %q", out)
				}
				has(t, "progress", out.String(), tc.want)
			})
		})
	}
}
