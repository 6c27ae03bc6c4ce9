package harness

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/lakecheck"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/load"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/tally"
)

// Lake is the lake's folder, as DuckDB reads it.
func (h *Harness) Lake() *lakecheck.Lake { return h.lake }

// SlotActive says whether somebody reads from the slot.
func (h *Harness) SlotActive() bool {
	h.t.Helper()
	return Scalar[bool](h, "select active from pg_replication_slots where slot_name = $1", h.Settings.Slot())
}

// Ack is the slot's confirmed_flush_lsn.
func (h *Harness) Ack() string {
	h.t.Helper()
	return Scalar[string](h, "select confirmed_flush_lsn::text from pg_replication_slots where slot_name = $1", h.Settings.Slot())
}

// WaitAck waits until everything that is committed by now is acknowledged. It
// fails the test when the streamer's processes have all ended.
func (h *Harness) WaitAck() { h.t.Helper(); h.WaitAckFor(Bound) }

// WaitAckFor is WaitAck with another bound.
func (h *Harness) WaitAckFor(bound time.Duration) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.ctx, bound)
	defer cancel()
	conn := h.Conn()
	end, err := pipeline.End(ctx, conn)
	if err == nil {
		err = pipeline.WaitAck(ctx, conn, h.Settings.Slot(), end, func(int64) error { return h.streaming() })
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// streaming is an error when every process that could move the ack has ended.
func (h *Harness) streaming() error {
	var last *Proc
	for _, p := range h.procs {
		if p.verb == "worker" {
			continue
		}
		if p.Running() {
			return nil
		}
		last = p
	}
	if last == nil {
		return nil
	}
	return fmt.Errorf("%s has ended with status %d; the end of its log:\n%s", last.name, last.ExitCode(), last.Tail(10))
}

// RowsInLake counts the lake's rows.
func (h *Harness) RowsInLake() tally.Counts {
	h.t.Helper()
	got, err := h.lake.Rows(h.ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	return got
}

// LakeHas fails the test unless the lake has exactly these rows of each kind,
// every position once and every row in its day's folder, and tidemark verify is
// content.
func (h *Harness) LakeHas(want tally.Counts) {
	h.t.Helper()
	h.fail(h.Missing(want), "rows in the lake differ from rows committed")
	h.Sound()
}

// Missing has a line for each kind of rows of which the lake has another number
// than want.
func (h *Harness) Missing(want tally.Counts) []string {
	h.t.Helper()
	return want.Differences(h.RowsInLake())
}

// Sound fails the test unless every position is in the lake once, every row in
// its day's folder, and tidemark verify is content.
func (h *Harness) Sound() {
	h.t.Helper()
	h.fail(h.Unsound(), "the lake is not sound")
}

// Unsound has a line for everything that Sound would fail the test for.
func (h *Harness) Unsound() []string {
	h.t.Helper()
	lines, err := h.lake.Repeated(h.ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	more, err := h.lake.Misplaced(h.ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	lines = append(lines, more...)
	if r := h.Verb("verify"); r.Code != 0 {
		lines = append(lines, fmt.Sprintf("tidemark verify ended with status %d:\n%s%s", r.Code, r.Stdout, r.Stderr))
	}
	return lines
}

// SameAsPostgres fails the test unless replaying the lake gives the tables as
// they stand; without names, those of package load.
func (h *Harness) SameAsPostgres(tables ...string) {
	h.t.Helper()
	h.fail(h.Unlike(tables...), "replaying the lake does not give the tables of Postgres")
}

// Unlike has a line for every difference that SameAsPostgres would fail the
// test for.
func (h *Harness) Unlike(tables ...string) []string {
	h.t.Helper()
	if len(tables) == 0 {
		tables = load.Tables()
	}
	lines, err := h.lake.Compare(h.ctx, h.Conn(), tables...)
	if err != nil {
		h.t.Fatal(err)
	}
	return lines
}

func (h *Harness) fail(lines []string, what string) {
	h.t.Helper()
	if len(lines) > 0 {
		h.t.Errorf("%s:\n  %s", what, strings.Join(lines, "\n  "))
	}
}
