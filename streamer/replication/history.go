package replication

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// History says on which timeline WAL was written. The zero History knows
// timeline zero only.
type History struct {
	// Current is the server's timeline.
	Current change.Timeline
	// Ancestors are the timelines before it, oldest first, with ends that do not
	// go back.
	Ancestors []Ancestor
}

// Ancestor is a timeline that ended when the next one branched off.
type Ancestor struct {
	Timeline change.Timeline
	// End is the switchpoint: the first LSN that belongs to the next timeline.
	End change.LSN
}

// TimelineOf is the timeline on which lsn was written: an LSN below a
// switchpoint belongs to the timeline that ended there.
func (h History) TimelineOf(lsn change.LSN) change.Timeline {
	i, _ := slices.BinarySearchFunc(h.Ancestors, lsn, func(a Ancestor, l change.LSN) int {
		if a.End <= l {
			return -1
		}
		return 1
	})
	if i < len(h.Ancestors) {
		return h.Ancestors[i].Timeline
	}
	return h.Current
}

// EndOf is the switchpoint at which an ancestor ended.
func (h History) EndOf(tl change.Timeline) (end change.LSN, ended bool) {
	for _, a := range h.Ancestors {
		if a.Timeline == tl {
			return a.End, true
		}
	}
	return 0, false
}

// Left says where this history has left the branch that a position of another
// one is on: the ancestor from which both come, and the timeline that went on
// here. ok is false if this history knows of no such switchpoint.
func (h History) Left(p change.Position) (a Ancestor, next change.Timeline, ok bool) {
	for i, a := range slices.Backward(h.Ancestors) {
		next := h.Current
		if i+1 < len(h.Ancestors) {
			next = h.Ancestors[i+1].Timeline
		}
		if a.Timeline <= p.Timeline {
			return a, next, p.Timeline < next && (p.Timeline > a.Timeline || p.LSN >= a.End)
		}
	}
	return Ancestor{}, 0, false
}

// Shift is the history with offset added to every timeline.
func (h History) Shift(offset change.Timeline) History {
	out := History{Current: h.Current + offset}
	for _, a := range h.Ancestors {
		out.Ancestors = append(out.Ancestors, Ancestor{Timeline: a.Timeline + offset, End: a.End})
	}
	return out
}

// ParseHistory reads a timeline history file (readTimeLineHistory in
// src/backend/access/transam/timeline.c): per line an ancestor's timeline ID,
// its switchpoint and a reason, separated by tabs or spaces; lines that are
// empty or begin with # say nothing.
func ParseHistory(current change.Timeline, content []byte) (History, error) {
	h := History{Current: current}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) < 2 {
			return History{}, fmt.Errorf("history of timeline %d, line %d: want a timeline and a switchpoint, got %q", current, n, line)
		}
		tl, err := strconv.ParseUint(fields[0], 10, 32)
		if err != nil {
			return History{}, fmt.Errorf("history of timeline %d, line %d: %w", current, n, err)
		}
		end, err := change.ParseLSN(fields[1])
		if err != nil {
			return History{}, fmt.Errorf("history of timeline %d, line %d: %w", current, n, err)
		}
		a := Ancestor{Timeline: change.Timeline(tl), End: end}
		if a.Timeline >= current {
			return History{}, fmt.Errorf("history of timeline %d, line %d: timeline %d is not before it", current, n, a.Timeline)
		}
		if k := len(h.Ancestors); k > 0 && (a.Timeline <= h.Ancestors[k-1].Timeline || a.End < h.Ancestors[k-1].End) {
			return History{}, fmt.Errorf("history of timeline %d, line %d: timeline %d does not follow timeline %d", current, n, a.Timeline, h.Ancestors[k-1].Timeline)
		}
		h.Ancestors = append(h.Ancestors, a)
	}
	if err := lines.Err(); err != nil {
		return History{}, fmt.Errorf("history of timeline %d: %w", current, err)
	}
	return h, nil
}
