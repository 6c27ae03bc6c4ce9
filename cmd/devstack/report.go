package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/load"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/tally"
)

// report prints what the demo has found out and says whether all of it agrees.
func (d *demoRun) report(ctx context.Context, want tally.Counts, took time.Duration) (bool, error) {
	got, err := d.lake.Rows(ctx)
	if err != nil {
		return false, err
	}
	heading("Rows committed in Postgres and rows in the lake")
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "table\toperation\tPostgres\tlake\t\t")
	for _, k := range want.Kinds(got) {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t\n", k.Table, k.Operation, want[k], got[k], mark(want[k] == got[k]))
	}
	fmt.Fprintf(w, "all\t\t%d\t%d\t%s\t\n", want.Total(), got.Total(), mark(want.Total() == got.Total()))
	w.Flush()
	fmt.Printf("%.0f rows per second over %s\n", float64(want.Total())/took.Seconds(), took.Round(time.Second))
	problems := want.Differences(got)

	checks := []struct {
		name string
		run  func(context.Context) ([]string, error)
	}{
		{"every position is in the lake exactly once", d.lake.Repeated},
		{"every row lies in the folder of its UTC commit day", d.lake.Misplaced},
		{"replaying the lake gives the tables as they stand in Postgres", func(ctx context.Context) ([]string, error) {
			return d.lake.Compare(ctx, d.conn, load.Tables()...)
		}},
	}
	heading("Checks, with DuckDB as the reader")
	for _, c := range checks {
		lines, err := c.run(ctx)
		if err != nil {
			return false, err
		}
		fmt.Printf("%s  %s\n", mark(len(lines) == 0), c.name)
		problems = append(problems, lines...)
	}
	for _, line := range problems {
		fmt.Println("  " + line)
	}
	if err := d.reportDays(ctx); err != nil {
		return false, err
	}
	verified, err := d.reportVerify(ctx)
	if err != nil {
		return false, err
	}
	if err := d.reportSample(ctx); err != nil {
		return false, err
	}
	d.reportPlaces()
	return len(problems) == 0 && verified, nil
}

func (d *demoRun) reportDays(ctx context.Context) error {
	days, err := d.lake.Days(ctx)
	if err != nil {
		return err
	}
	heading("Files and bytes per day")
	for _, day := range days {
		fmt.Printf("%s   %d files   %d rows   %s\n", day.Day, day.Files, day.Rows, size(day.Bytes))
	}
	lsn, lag, err := pipeline.Ack(ctx, d.conn, d.settings.Slot())
	if err != nil {
		return err
	}
	fmt.Printf("\nack %s, %s behind the end of the log\n", lsn, size(lag))
	return nil
}

func (d *demoRun) reportVerify(ctx context.Context) (bool, error) {
	r, err := d.pipeline.Verb(ctx, "verify")
	if err != nil {
		return false, err
	}
	heading("tidemark verify")
	fmt.Print(r.Stdout, r.Stderr)
	fmt.Printf("%s  exit status %d\n", mark(r.Code == 0), r.Code)
	return r.Code == 0, nil
}

func (d *demoRun) reportSample(ctx context.Context) error {
	text, err := d.lake.Query(ctx, `
		select "table", operation, commit_time::varchar as commit_time,
			printf('%%X/%%X', commit_lsn >> 32, commit_lsn & 4294967295) as commit_lsn, ordinal, before, after
		from %s where "table" <> 'public.events' order by timeline desc, lake.commit_lsn desc, ordinal desc limit 8`)
	if err != nil {
		return err
	}
	heading("The newest rows, as DuckDB reads them")
	fmt.Print(text)
	return nil
}

func (d *demoRun) reportPlaces() {
	heading("Where to look")
	fmt.Printf("Temporal UI   %s/namespaces/%s/workflows\n", d.stack.Temporal.UI(), d.stack.Temporal.Namespace())
	fmt.Printf("status page   http://%s\n", d.settings["ops.listen"])
	fmt.Printf("lake folder   %s\n", d.lake.Folder())
	fmt.Printf("Postgres      %s\n", d.stack.Postgres.URL())
	fmt.Printf("settings      %s\n", d.pipeline.Config)
	fmt.Printf("logs          %s\n", d.stack.Dir())
}

func heading(text string) {
	fmt.Printf("\n%s\n%s\n", text, strings.Repeat("-", len(text)))
}

func mark(ok bool) string {
	if ok {
		return "ok"
	}
	return "DIFFERENT"
}

// size prints bytes for people.
func size(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	default:
		return fmt.Sprintf("%d B", n)
	}
}
