package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/lakecheck"
	"github.com/tidemark-cdc/tidemark/internal/change"
)

// Verdict is what the check of a lake against the truth has found.
type Verdict struct {
	// Committed and InLake are numbers of changes.
	Committed int64 `json:"rows_committed"`
	InLake    int64 `json:"rows_in_lake"`
	// Lost were committed and are not in the lake; Duplicated are in it again;
	// Alien are in it and were never committed; Wrong have other values.
	Lost       int64 `json:"lost"`
	Duplicated int64 `json:"duplicated"`
	Alien      int64 `json:"never_committed"`
	Wrong      int64 `json:"wrong"`
	// Ahead are objects that came after an ack that covers them, seen in Samples
	// looks at the ack.
	Ahead   int `json:"ack_ahead_of_lake"`
	Samples int `json:"ack_samples"`
	// Other counts what is not in order, of another day, or not as tidemark
	// verify wants it.
	Other int `json:"other"`
	// Problems has a line for the first of each.
	Problems []string `json:"problems"`
}

// Good says that nothing was found.
func (v *Verdict) Good() bool {
	return v.Lost+v.Duplicated+v.Alien+v.Wrong == 0 && v.Ahead+v.Other == 0
}

// String is what was found, and the first lines about it.
func (v *Verdict) String() string {
	return fmt.Sprintf("lost %d, duplicated %d, never committed %d, wrong %d, ack ahead %d, other %d of %d committed and %d in the lake:\n  %s",
		v.Lost, v.Duplicated, v.Alien, v.Wrong, v.Ahead, v.Other, v.Committed, v.InLake, strings.Join(v.Problems, "\n  "))
}

// maxProblems bounds how many are spelled out.
const maxProblems = 40

func (v *Verdict) problem(format string, args ...any) {
	if len(v.Problems) < maxProblems {
		v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
	}
}

// Check holds the lake against the truth. Everything must be acknowledged and
// nothing be written any more.
func (r *Run) Check(ctx context.Context) (*Verdict, error) {
	if err := r.truth.read(ctx); err != nil {
		return nil, err
	}
	v := &Verdict{}
	if err := r.compare(ctx, v); err != nil {
		return nil, err
	}
	ahead, samples, err := r.sampler.ahead()
	if err != nil {
		return nil, err
	}
	v.Ahead, v.Samples = len(ahead), samples
	for _, l := range ahead {
		v.problem("%s", l)
	}
	for _, look := range []func(context.Context) ([]string, error){r.lake.Misplaced, r.lake.Disordered} {
		lines, err := look(ctx)
		if err != nil {
			return nil, err
		}
		v.Other += len(lines)
		for _, l := range lines {
			v.problem("%s", l)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	res, err := r.pipe.Verb(ctx, "verify")
	if err != nil {
		return nil, err
	}
	if res.Code != 0 {
		v.Other++
		v.problem("tidemark verify ended with status %d:\n%s%s", res.Code, res.Stdout, res.Stderr)
	}
	return v, nil
}

// merge walks the truth and the lake side by side, transaction by transaction.
// A transaction's commit record begins, where the lake has it, below its end,
// which the truth has, and the next one's not before that end.
type merge struct {
	v    *Verdict
	next func() (lakecheck.Row, bool)
	row  lakecheck.Row
	more bool
	last change.Position
	tx   change.LSN // commit LSN of the lake's transaction that is being matched
	end  change.LSN // end of the truth's
}

func (r *Run) compare(ctx context.Context, v *Verdict) error {
	var failed error
	rows, stop := r.lake.Stream(ctx, &failed)
	defer stop()
	m := &merge{v: v, next: rows}
	m.advance()
	if err := r.truth.each(m.want); err != nil {
		return err
	}
	for m.more {
		m.alien()
	}
	return failed
}

// advance goes to the lake's next row, and counts repeated ones.
func (m *merge) advance() {
	for {
		m.row, m.more = m.next()
		if !m.more {
			return
		}
		m.v.InLake++
		if m.row.Position != m.last {
			m.last = m.row.Position
			return
		}
		m.v.Duplicated++
		m.v.problem("position %s is there again (%s of %s)", m.row.Position, m.row.Operation, m.row.Table)
	}
}

func (m *merge) alien() {
	m.v.Alien++
	m.v.problem("the lake has a change that was not committed, or not there: %s of %s at %s, xid %d", m.row.Operation, m.row.Table, m.row.Position, m.row.XID)
	m.advance()
}

// want looks for a committed change in the lake.
func (m *merge) want(t truthRow) error {
	m.v.Committed++
	if t.end != m.end {
		// What is left of the transaction before is more than was committed.
		for m.more && m.row.Position.LSN < m.end {
			m.alien()
		}
		m.end = t.end
	}
	if !m.more || m.row.Position.LSN >= t.end {
		m.v.Lost++
		m.v.problem("lost: %s of %s, in transaction %d that ends at %s", t.data.operation, t.data.table, t.xid, t.end)
		return nil
	}
	if why := differs(t, m.row); why != "" {
		m.v.Wrong++
		m.v.problem("at %s: %s of %s in transaction %d: %s", m.row.Position, t.data.operation, t.data.table, t.xid, why)
	}
	m.advance()
	return nil
}

// differs says in what the lake's row is not the committed change.
func differs(t truthRow, row lakecheck.Row) string {
	d := t.data
	if row.XID != t.xid || row.Operation != d.operation || row.Table != d.table {
		return fmt.Sprintf("the lake has %s of %s in transaction %d", row.Operation, row.Table, row.XID)
	}
	if d.operation == "message" {
		var m struct{ Prefix, Content string }
		if err := json.Unmarshal([]byte(row.After), &m); err != nil || m.Prefix != d.prefix || m.Content != d.content {
			return fmt.Sprintf("the lake has %.80s, the message was %q of %q", row.After, d.content, d.prefix)
		}
		return ""
	}
	unchanged := map[string]bool{}
	for _, c := range row.Unchanged {
		unchanged[c] = true
	}
	if why := fits(d.new, row.After, unchanged, true); why != "" {
		return "after: " + why
	}
	if d.old != nil {
		if why := fits(d.old, row.Before, nil, false); why != "" {
			return "before: " + why
		}
	}
	return ""
}
