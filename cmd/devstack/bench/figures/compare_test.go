package figures

import (
	"bytes"
	"strings"
	"testing"
)

func figure(name, unit string, low, median, high float64) Figure {
	return Figure{Name: name, Unit: unit, Median: median, Min: low, Max: high, Runs: 5}
}

func TestOnlyWhatMovesBeyondBothSpreadsHasChanged(t *testing.T) {
	before := figure("x", "ratio", 1, 2, 3)
	for name, tc := range map[string]struct {
		before, after Figure
		want          Verdict
	}{
		"the same":                           {before, before, Within},
		"within the old spread":              {before, figure("x", "ratio", 2.5, 2.9, 3), Within},
		"its spread holds the old":           {before, figure("x", "ratio", 1.9, 3.5, 4), Within},
		"beyond both":                        {before, figure("x", "ratio", 2.5, 3.5, 4), Worse},
		"below both":                         {before, figure("x", "ratio", 0.1, 0.5, 1.5), Better},
		"a rate that has fallen":             {figure("x", "rows/s", 10, 20, 30), figure("x", "rows/s", 1, 2, 3), Worse},
		"a rate that has grown":              {figure("x", "rows/s", 10, 20, 30), figure("x", "rows/s", 40, 50, 60), Better},
		"one that there was not":             {Figure{Name: "y"}, before, New},
		"a run each, and another figure":     {figure("x", "s", 2, 2, 2), figure("x", "s", 3, 3, 3), Worse},
		"a run each, and the same to a hair": {figure("x", "s", 2, 2, 2), figure("x", "s", 2, 2, 2), Within},
	} {
		if got := Compare([]Figure{tc.before}, []Figure{tc.after})[0].Verdict; got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}

func TestAFigureThatIsMissingIsNoted(t *testing.T) {
	changes := Compare([]Figure{figure("a", "s", 1, 1, 1), figure("b", "s", 1, 1, 1)}, []Figure{figure("b", "s", 1, 1, 1)})
	var out bytes.Buffer
	worse, err := PrintChanges(&out, changes)
	if err != nil || worse != 1 {
		t.Errorf("%d are worse, %v; want 1", worse, err)
	}
	for _, want := range []string{"missing", "\na ", "1 figures are within"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}
