package figures

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

// Verdict says how a figure has changed.
type Verdict string

// The verdicts. A figure is Better or Worse if each of the two medians lies
// beyond the other's spread, and Within otherwise.
const (
	Within  Verdict = "within the spread"
	Better  Verdict = "better"
	Worse   Verdict = "worse"
	Missing Verdict = "missing"
	New     Verdict = "new"
)

// Change is a figure of two reports. Of a Missing one After is zero, of a New
// one Before.
type Change struct {
	Before, After Figure
	Verdict       Verdict
}

// Compare holds every figure of after against the one of that name of before.
func Compare(before, after []Figure) []Change {
	known := map[string]Figure{}
	for _, f := range before {
		known[f.Name] = f
	}
	var changes []Change
	for _, f := range after {
		old, ok := known[f.Name]
		delete(known, f.Name)
		change := Change{Before: old, After: f, Verdict: New}
		if ok {
			change.Verdict = judge(old, f)
		}
		changes = append(changes, change)
	}
	for _, f := range before {
		if _, ok := known[f.Name]; ok {
			changes = append(changes, Change{Before: f, Verdict: Missing})
		}
	}
	return changes
}

func judge(before, after Figure) Verdict {
	inside := func(v float64, f Figure) bool { return f.Min <= v && v <= f.Max }
	if inside(after.Median, before) || inside(before.Median, after) {
		return Within
	}
	// Of a rate more is better, of everything else less.
	if more := after.Median > before.Median; more == (after.Unit == "rows/s" || after.Against == "one worker") {
		return Better
	}
	return Worse
}

// Read reads figures that Write has written.
func Read(path string) ([]Figure, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read figures: %w", err)
	}
	var list []Figure
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, fmt.Errorf("read figures: %s: %w", path, err)
	}
	return list, nil
}

// PrintChanges writes what is not within the spread as a table, and says how
// many figures are worse or missing.
func PrintChanges(w io.Writer, changes []Change) (worse int, err error) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "name\tbefore\t(spread)\tafter\t(spread)\tunit\tverdict")
	within := 0
	for _, c := range changes {
		switch c.Verdict {
		case Within:
			within++
			continue
		case Worse, Missing:
			worse++
		}
		name, unit := c.After.Name, c.After.Unit
		if c.Verdict == Missing {
			name, unit = c.Before.Name, c.Before.Unit
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, digits(c.Before.Median), spread(c.Before), digits(c.After.Median), spread(c.After), unit, c.Verdict)
	}
	if err := t.Flush(); err != nil {
		return worse, err
	}
	_, err = fmt.Fprintf(w, "%d figures are within the spread of both.\n", within)
	return worse, err
}

func spread(f Figure) string { return digits(f.Min) + " to " + digits(f.Max) }
