package lake

import (
	"bufio"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// WriteText prints the report for people: whose lake it is, rows per day, then
// one line per finding, and last one line that says whether all is well.
func (r Report) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "Lake      %s\n", r.Lake)
	if id := r.Identity; id != nil {
		fmt.Fprintf(out, "Pipeline  %s, Postgres system %s, from %s on timeline %d\n", id.Pipeline, id.SystemID, id.StartLSN, id.Timeline)
	}
	if a := r.Ack; a != nil {
		fmt.Fprintf(out, "Ack       %s, last position %s, written %s\n", a.Ack, a.Last, a.At.UTC().Format(time.RFC3339))
	}
	for _, c := range r.Chains {
		fmt.Fprintf(out, "Chain     %s: %s in %s", c.Pipeline, count(c.Rows, "row"), count(c.Objects, "object"))
		if c.Objects > 0 {
			fmt.Fprintf(out, ", from %s to %s", c.First, c.Last)
		}
		fmt.Fprintln(out)
		if c.InFlight > 0 {
			fmt.Fprintf(out, "          %s in flight: stored and not acknowledged yet", count(c.InFlight, "object"))
			if c.Islands > 0 {
				fmt.Fprintf(out, ", with %s before or between them still being uploaded", count(c.Islands, "hole"))
			}
			fmt.Fprintln(out)
		}
	}
	if r.Replayed > 0 {
		fmt.Fprintf(out, "Replayed  %s in quarantine whose rows are in the lake by now; tidemark replay removes what is left\n", count(r.Replayed, "object"))
	}
	r.writeSettled(out)
	if len(r.Days) > 0 {
		fmt.Fprintln(out)
		r.writeDays(out)
	}
	fmt.Fprintln(out)
	for _, f := range r.Findings {
		fmt.Fprintf(out, "%-10s %s %s\n", f.Kind, f.Key, f.Text)
	}
	total := int64(0)
	for _, n := range r.Counts {
		total += n
	}
	if more := total - int64(len(r.Findings)); more > 0 {
		fmt.Fprintf(out, "... and %s\n", count(more, "more finding"))
	}
	switch {
	case !r.OK():
		fmt.Fprintf(out, "Not well: %s.\n", count(total, "finding"))
	case r.Ack == nil:
		fmt.Fprintln(out, "Well: the lake is empty, and nothing was acknowledged.")
	case r.Missing() > 0:
		fmt.Fprintf(out, "Well, except for %s: every other acknowledged change is in the lake, once.\n", count(r.Missing(), "recorded gap"))
	default:
		fmt.Fprintln(out, "Well: every acknowledged change is in the lake, once.")
	}
	return out.Flush()
}

// writeSettled says what a person has settled.
func (r Report) writeSettled(w io.Writer) {
	if id := r.Identity; id != nil {
		for _, s := range id.Successions {
			fmt.Fprintf(w, "Successor Postgres system %s since %s, timelines from %d on: %s\n", s.SystemID, s.At.UTC().Format(time.RFC3339), s.TimelineOffset+1, s.Reason)
		}
	}
	for _, g := range r.Gaps {
		fmt.Fprintf(w, "Gap       %s\n", g.Text())
	}
	if r.WithinGaps > 0 {
		fmt.Fprintf(w, "          %s in recorded gaps: these rows came into the lake after all\n", count(r.WithinGaps, "object"))
	}
	for _, d := range r.Divergences {
		fmt.Fprintf(w, "Diverged  %s; the lake keeps %s in %s that the database has lost\n", d.Text(), count(d.LostRows, "row"), count(d.LostObjects, "object"))
		for _, key := range d.Straddling {
			fmt.Fprintf(w, "          and the rows beyond the switchpoint in %s\n", key)
		}
	}
}

// Text is the gap as a line for people.
func (g Gap) Text() string {
	what := "changes in between are not in the lake"
	if g.Empty {
		what = "nothing was committed in between"
	}
	return fmt.Sprintf("after %s up to %s, recorded %s: %s; %s", g.Follows, g.Last, g.At.UTC().Format(time.RFC3339), g.Reason, what)
}

// Text is the divergence as a line for people.
func (d Divergence) Text() string {
	return fmt.Sprintf("timeline %d went on from %s on timeline %d, recorded %s: %s", d.Through.Timeline, d.After.LSN+1, d.After.Timeline, d.At.UTC().Format(time.RFC3339), d.Reason)
}

// count says how many of a thing there are.
func count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func (r Report) writeDays(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(day any, d DayReport) {
		note := ""
		if d.Quarantined > 0 {
			note = fmt.Sprintf("%d in quarantine (%d rows)", d.Quarantined, d.QuarantinedRows)
		}
		fmt.Fprintf(t, "%v\t%d\t%d\t%d\t %s\n", day, d.Rows, d.Objects, d.Bytes, note)
	}
	fmt.Fprintln(t, "Day\tRows\tObjects\tBytes\t")
	total := DayReport{Objects: r.Objects, Rows: r.Rows, Bytes: r.Bytes}
	for _, d := range r.Days {
		line(d.Day, d)
		total.Quarantined += d.Quarantined
		total.QuarantinedRows += d.QuarantinedRows
	}
	line("Total", total)
	t.Flush()
}
