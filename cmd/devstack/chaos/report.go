package chaos

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"
)

// Report is what a campaign has come to.
type Report struct {
	Seed     uint64        `json:"seed"`
	Postgres int           `json:"postgres"`
	Rate     int           `json:"rate"`
	Took     time.Duration `json:"took_ns"`
	// Kinds are by name.
	Kinds map[string]*KindReport `json:"faults"`
	// Stall is the longest time that the ack stood still while there was
	// something to acknowledge, faults included.
	Stall   time.Duration `json:"longest_stall_ns"`
	StallAt time.Time     `json:"longest_stall_at"`
	// Exits are processes that ended by themselves and were started again.
	Exits     []Exit     `json:"exits"`
	AfterKill *AfterKill `json:"after_kill,omitempty"`
	*Verdict  `json:"verdict"`
	// Writes of odd shapes that were committed, and that failed because a server
	// was away.
	Writes       int64 `json:"odd_transactions"`
	FailedWrites int64 `json:"odd_transactions_failed"`
	// Dir has all data and logs, if they were kept.
	Dir string `json:"dir"`

	writes, failedWrites atomic.Int64
}

// KindReport is about one kind of fault.
type KindReport struct {
	Injected int `json:"injected"`
	// Alone are the times, from the end of the fault until the ack had passed
	// everything committed by then, of those that no other fault came with.
	Alone []time.Duration `json:"recovery_alone_ns"`
	// Among are those of all others.
	Among []time.Duration `json:"recovery_among_others_ns"`
}

// AfterKill is how the load's last act went.
type AfterKill struct {
	// Rate is the changes per second that were really written before the kill.
	Rate     int           `json:"changes_per_second"`
	Changes  int64         `json:"changes"`
	CaughtUp time.Duration `json:"caught_up_ns"`
}

func newReport(c Campaign) *Report {
	return &Report{Seed: c.Seed, Postgres: c.Postgres, Rate: c.Rate, Kinds: map[string]*KindReport{}}
}

func (r *Report) injected(kind string) {
	k := r.Kinds[kind]
	if k == nil {
		k = &KindReport{}
		r.Kinds[kind] = k
	}
	k.Injected++
}

func (r *Report) recovered(kinds []string, took time.Duration) {
	for _, name := range kinds {
		k := r.Kinds[name]
		if len(kinds) == 1 {
			k.Alone = append(k.Alone, took)
		} else {
			k.Among = append(k.Among, took)
		}
	}
}

func (r *Report) faults() int {
	n := 0
	for _, k := range r.Kinds {
		n += k.Injected
	}
	return n
}

// Write writes the report as JSON.
func (r *Report) Write(path string) error {
	r.Writes, r.FailedWrites = r.writes.Load(), r.failedWrites.Load()
	b, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.WriteFile(path, append(b, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// Print prints the report for people, as Markdown tables.
func (r *Report) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	fmt.Fprintf(w, "\n| fault\t| injected\t| caught up after, alone (median)\t| (max)\t| with others (max)\t|\n|---\t|---:\t|---:\t|---:\t|---:\t|\n")
	for _, name := range slices.Sorted(maps.Keys(r.Kinds)) {
		k := r.Kinds[name]
		fmt.Fprintf(w, "| %s\t| %d\t| %s\t| %s\t| %s\t|\n", name, k.Injected, middle(k.Alone), greatest(k.Alone), greatest(k.Among))
	}
	fmt.Fprintf(w, "\n|\t|\t|\n|---\t|---:\t|\n")
	line := func(what, format string, args ...any) {
		fmt.Fprintf(w, "| %s\t| %s\t|\n", what, fmt.Sprintf(format, args...))
	}
	line("seed", "%d", r.Seed)
	line("Postgres", "%d", r.Postgres)
	line("time", "%s", r.Took.Round(time.Second))
	line("faults injected", "%d of %d kinds", r.faults(), len(r.Kinds))
	line("odd transactions", "%d, and %d that failed with a server away", r.writes.Load(), r.failedWrites.Load())
	if v := r.Verdict; v != nil {
		line("rows committed", "%d", v.Committed)
		line("rows in the lake", "%d", v.InLake)
		line("lost", "%d", v.Lost)
		line("duplicated", "%d", v.Duplicated)
		line("never committed", "%d", v.Alien)
		line("with other values", "%d", v.Wrong)
		line("ack ahead of the lake", "%d, in %d looks", v.Ahead, v.Samples)
		line("other findings", "%d", v.Other)
	}
	line("longest stall of the ack", "%s", seconds(r.Stall))
	line("processes that ended by themselves", "%d", len(r.Exits))
	if a := r.AfterKill; a != nil {
		line(fmt.Sprintf("everything killed under %d changes per second", a.Rate), "caught up %s after the start", seconds(a.CaughtUp))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, e := range r.Exits {
		fmt.Fprintf(out, "%s ended by itself at %s with status %d: %s\n", e.Process, e.At.UTC().Format(time.TimeOnly), e.Status, e.Last)
	}
	if r.Verdict != nil && len(r.Problems) > 0 {
		fmt.Fprintf(out, "\nProblems:\n  %s\n", strings.Join(r.Problems, "\n  "))
	}
	return nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func middle(all []time.Duration) string {
	if len(all) == 0 {
		return "-"
	}
	s := slices.Sorted(slices.Values(all))
	return seconds(s[len(s)/2])
}

func greatest(all []time.Duration) string {
	if len(all) == 0 {
		return "-"
	}
	return seconds(slices.Max(all))
}
