package figures

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestRunsAreSummedUpInTheOrderOfTheirNames(t *testing.T) {
	r := NewReport()
	for _, v := range []float64{3, 1, 2} {
		r.Add("b.ratio", "ratio", "the other", v)
		r.Add("a.mb", "MiB", "", 10*v)
	}
	r.Add("a.mb", "MiB", "", 40)
	want := []Figure{
		{Name: "b.ratio", Unit: "ratio", Median: 2, Min: 1, Max: 3, Runs: 3, Against: "the other"},
		{Name: "a.mb", Unit: "MiB", Median: 25, Min: 10, Max: 40, Runs: 4},
	}
	if got := r.Figures(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestWrittenFiguresHaveTheNamesThatOthersRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bench.json")
	if err := Write(file, []Figure{{Name: "n", Unit: "ratio", Median: 2, Min: 1, Max: 3, Runs: 5, Against: "x"}}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{{"name": "n", "unit": "ratio", "median": 2.0, "min": 1.0, "max": 3.0, "runs": 5.0, "against": "x"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestPrintedDigitsAreThoseThatMeanSomething(t *testing.T) {
	var out strings.Builder
	if err := Print(&out, []Figure{{Name: "n", Unit: "u", Median: 12.34, Min: 0.00775, Max: 1234.5, Runs: 3, Against: "x"}}); err != nil {
		t.Fatal(err)
	}
	line := strings.Fields(strings.Split(out.String(), "\n")[1])
	if want := []string{"n", "12.3", "0.0077", "1234", "u", "3", "x"}; !reflect.DeepEqual(line, want) {
		t.Errorf("got %q, want %q", line, want)
	}
}
