// Package figures collects what a bench measures: several runs of each figure,
// summed up as median, least and greatest, in the order in which they were first
// seen.
package figures

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
)

// Figure is one measured quantity over several runs.
type Figure struct {
	Name string `json:"name"`
	// Unit is "ratio", "s", "ms", "ns", "rows/s", "MiB", "bytes" or "allocations".
	Unit   string  `json:"unit"`
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Runs   int     `json:"runs"`
	// Against says what the figure is compared with, or may not exceed.
	Against string `json:"against"`
}

// Report collects values until all runs are done. Not safe for concurrent use.
type Report struct {
	names  []string
	series map[string]*series
}

type series struct {
	unit, against string
	values        []float64
}

// NewReport returns an empty one.
func NewReport() *Report { return &Report{series: map[string]*series{}} }

// Add adds one run's value. unit and against are those of the first call.
func (r *Report) Add(name, unit, against string, value float64) {
	s, ok := r.series[name]
	if !ok {
		s = &series{unit: unit, against: against}
		r.series[name] = s
		r.names = append(r.names, name)
	}
	s.values = append(s.values, value)
}

// Figures are in the order in which they were first added.
func (r *Report) Figures() []Figure {
	list := make([]Figure, 0, len(r.names))
	for _, name := range r.names {
		s := r.series[name]
		list = append(list, Figure{
			Name: name, Unit: s.unit, Against: s.against, Runs: len(s.values),
			Median: median(s.values), Min: slices.Min(s.values), Max: slices.Max(s.values),
		})
	}
	return list
}

// median of at least one value.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// Print writes figures as a table.
func Print(w io.Writer, figures []Figure) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "name\tmedian\tmin\tmax\tunit\truns\tagainst")
	for _, f := range figures {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", f.Name, digits(f.Median), digits(f.Min), digits(f.Max), f.Unit, f.Runs, f.Against)
	}
	return t.Flush()
}

// digits writes v with the digits that mean something.
func digits(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 0.1 || v == 0:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.2g", v)
}

// Write writes figures as JSON into a file.
func Write(path string, figures []Figure) error {
	b, err := json.MarshalIndent(figures, "", "  ")
	if err == nil {
		err = os.WriteFile(path, append(b, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	return nil
}
