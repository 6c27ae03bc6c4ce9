package internal_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What stands last in the log of a red run is what the failed tests have said,
// and nothing else.
func TestTheEndOfARedRunSaysWhatHasFailed(t *testing.T) {
	log, err := os.ReadFile(filepath.Join("testdata", "failures.log"))
	if err != nil {
		t.Fatal(err)
	}
	got := failures(t, "20000", string(log))
	want := `--- FAIL: TestBad  (example.com/a)
    a_test.go:5: before
    a_test.go:5: after
--- FAIL: TestBad/inner  (example.com/a)
    a_test.go:5: inner is
        bad
--- FAIL: TestTwo  (example.com/a)
    a_test.go:7: two
    a_test.go:7: two is bad
--- FAIL: TestPanics  (example.com/b)
    b_test.go:3: soon
--- FAIL: the test process  (example.com/b)
panic: oh [recovered, repanicked]

goroutine 7 [running]:
--- FAIL: the test process  (example.com/c)
goleak: Errors on successful test run: found
--- FAIL: data race  (example.com/e)
WARNING: DATA RACE
Read at 0x00c000018258 by goroutine 9:
==================
--- FAIL: TestRace  (example.com/e)
==================
    testing.go:1712: race detected during execution of test
--- FAIL: (example.com/g)
    g_test.go:3: and is gone
--- FAIL: build of example.com/broken
broken/a_test.go:3:27: undefined: nothing
failed:
  TestBad  (example.com/a)
  TestBad/inner  (example.com/a)
  TestTwo  (example.com/a)
  TestPanics  (example.com/b)
  the test process  (example.com/b)
  the test process  (example.com/c)
  data race  (example.com/e)
  TestRace  (example.com/e)
  (example.com/g)
  build of example.com/broken
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// It is meant for logs of which only the end is kept.
func TestALongFailureIsCut(t *testing.T) {
	line := "    a_test.go:7: " + strings.Repeat("x", 80) + "\n"
	log := "=== RUN   TestLong\n    a_test.go:6: the first\n" + strings.Repeat(line, 1000) + "    a_test.go:8: the last\n--- FAIL: TestLong (0.00s)\nFAIL\nFAIL\texample.com/a\t1.120s\n"
	got := failures(t, "5000", log)
	if len(got) > 5500 || !strings.Contains(got, "the first\n") || !strings.Contains(got, "\n    [...]\n") || !strings.Contains(got, "the last\n") {
		t.Errorf("%d characters:\n%s", len(got), got)
	}
}

func failures(t *testing.T, room, log string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "awk", "-v", "room="+room, "-f", filepath.Join("..", "scripts", "failures.awk"))
	cmd.Stdin = strings.NewReader(log)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}
