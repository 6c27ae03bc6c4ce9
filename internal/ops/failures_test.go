package ops

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/activities"
)

const failuresFile = "../../docs/failures.md"

// failure is a row of docs/failures.md.
type failure struct {
	section, name, seen, metric, test string
	// cells counts the row's, empty the ones without a word.
	cells, empty int
}

func readFailures(text string) []failure {
	var rows []failure
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = title
		}
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| failure |") {
			continue
		}
		// A bar within a cell is written \|.
		cells := strings.Split(strings.Trim(strings.ReplaceAll(line, `\|`, "\x00"), "|"), "|")
		f := failure{section: section, cells: len(cells)}
		for i := range cells {
			cells[i] = strings.ReplaceAll(strings.TrimSpace(cells[i]), "\x00", "|")
			if cells[i] == "" {
				f.empty++
			}
		}
		f.name = cells[0]
		if len(cells) == 6 {
			f.seen, f.metric, f.test = cells[1], cells[2], cells[5]
		}
		rows = append(rows, f)
	}
	return rows
}

// tree is what the Go files of the repository say.
type tree struct {
	// tests has the names of subtests, and whatever else stands in quotes in the
	// same folder's test files, by the name of a test.
	tests map[string][]string
	// says has everything that a shipped file has in quotes, a text for each file.
	says []string
}

func readTree(t *testing.T, root string) tree {
	t.Helper()
	found := tree{tests: map[string][]string{}}
	quoted := map[string][]string{}
	inFolder := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		var texts []string
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if s, err := strconv.Unquote(lit.Value); err == nil {
					texts = append(texts, s)
				}
			}
			return true
		})
		if !strings.HasSuffix(path, "_test.go") {
			// One text, since a sentence may be put together from several.
			found.says = append(found.says, strings.Join(texts, ""))
			return nil
		}
		folder := filepath.Dir(path)
		quoted[folder] = append(quoted[folder], texts...)
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
				inFolder[folder] = append(inFolder[folder], fn.Name.Name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder, names := range inFolder {
		for _, name := range names {
			found.tests[name] = append(found.tests[name], quoted[folder]...)
		}
	}
	return found
}

// hasTest says whether there is such a test. The names of its subtests may be
// written with blanks, as in the source, or with underscores, as go test
// shows them.
func (tr tree) hasTest(name string) bool {
	top, rest, _ := strings.Cut(name, "/")
	texts, ok := tr.tests[top]
	if !ok || rest == "" {
		return ok
	}
	plain := func(s string) string { return strings.ReplaceAll(s, " ", "_") }
	for sub := range strings.SplitSeq(rest, "/") {
		if !slices.ContainsFunc(texts, func(s string) bool { return plain(s) == plain(sub) }) {
			return false
		}
	}
	return true
}

// isSaid says whether a shipped file has the sentence, of which … stands for
// what varies.
func (tr tree) isSaid(sentence string) bool {
	return slices.ContainsFunc(tr.says, func(text string) bool {
		for part := range strings.SplitSeq(sentence, "…") {
			if !strings.Contains(text, strings.TrimSpace(part)) {
				return false
			}
		}
		return true
	})
}

var (
	inBackquotes = regexp.MustCompile("`([^`]+)`")
	// ourSentence is how the page quotes what a process says.
	ourSentence = regexp.MustCompile(`\*"([^"]+)"\*`)
	classLabel  = regexp.MustCompile(`class="(\w+)"`)
	alertName   = regexp.MustCompile(`\bTidemark[A-Z]\w+`)
)

// wrong says what is wrong with a row, a sentence each.
func (tr tree) wrong(f failure, metrics, alerts map[string]bool) []string {
	if f.cells != 6 {
		return []string{"it does not have six cells; a bar in one is written \\|"}
	}
	var list []string
	if f.empty > 0 {
		list = append(list, "a cell is empty")
	}
	tests := 0
	for _, m := range inBackquotes.FindAllStringSubmatch(f.test, -1) {
		tests++
		if !tr.hasTest(m[1]) {
			list = append(list, "there is no test "+m[1])
		}
	}
	if tests == 0 {
		list = append(list, "it names no test, in `back quotes`")
	}
	for _, name := range metricName.FindAllString(f.metric, -1) {
		if !metrics[name] {
			list = append(list, "there is no metric "+name)
		}
	}
	if !regexp.MustCompile(`tidemark_|temporal_|process_|^none\b`).MatchString(f.metric) {
		list = append(list, "it names no metric; where there is none, say none and why")
	}
	for _, m := range classLabel.FindAllStringSubmatch(f.metric, -1) {
		if !slices.Contains(activities.Classes(), activities.Class(m[1])) {
			list = append(list, "no error has the class "+m[1])
		}
	}
	for _, m := range ourSentence.FindAllStringSubmatch(f.seen, -1) {
		if !tr.isSaid(m[1]) {
			list = append(list, "no shipped file says \""+m[1]+"\"; write … for what varies, and *\"…\"* around our own words only")
		}
	}
	for _, name := range alertName.FindAllString(f.seen+f.metric, -1) {
		if !alerts[name] && !strings.HasPrefix(name, "TidemarkState") {
			list = append(list, "there is no alert "+name)
		}
	}
	return list
}

// A failure that is documented is one that a test makes happen, under the very
// sentence and metric that the page has.
func TestEveryFailureOfThePageHasATestAMetricAndItsSentence(t *testing.T) {
	tr := readTree(t, "../..")
	metrics, alerts := ownNames(t), map[string]bool{}
	for _, a := range readAlerts(t) {
		alerts[a.name] = true
	}
	rows := readFailures(readFile(t, failuresFile))
	seen := map[string]bool{}
	for _, f := range rows {
		for _, text := range tr.wrong(f, metrics, alerts) {
			t.Errorf("docs/failures.md, %s, %q: %s", f.section, f.name, text)
		}
		if seen[f.section+f.name] {
			t.Errorf("docs/failures.md, %s, %q: it stands there twice", f.section, f.name)
		}
		seen[f.section+f.name] = true
	}
}

func TestWhatIsWrongWithAPageOfFailuresIsSeen(t *testing.T) {
	tr := tree{
		tests: map[string][]string{"TestX": {"the first case", "Postgres 15"}},
		says:  []string{"the slot %s is gone: make it again", "something else"},
	}
	const good = "| a failure | *\"the slot … is gone\"*, TidemarkSlotLost | `tidemark_slot_lost`, `tidemark_upload_failures_total{class=\"StoreFull\"}` | nothing | act | `TestX`, `TestX/the first case`, `TestX/Postgres_15` |"
	for name, tc := range map[string]struct{ old, new, want string }{
		"nothing":           {"", "", ""},
		"a test":            {"`TestX`", "`TestY`", "no test TestY"},
		"a subtest":         {"the first case", "the last case", "no test TestX/the last case"},
		"a version":         {"Postgres_15", "Postgres_14", "no test TestX/Postgres_14"},
		"no test":           {"`", "", "names no test"},
		"a metric":          {"tidemark_slot_lost", "tidemark_slot_found", "no metric tidemark_slot_found"},
		"a class":           {"StoreFull", "StoreEmpty", "class StoreEmpty"},
		"an alert":          {"TidemarkSlotLost", "TidemarkSlotFound", "no alert TidemarkSlotFound"},
		"a sentence":        {"is gone", "has gone", "no shipped file says"},
		"a cell too many":   {"nothing", "nothing | at all", "six cells"},
		"a cell that lacks": {"nothing", " ", "a cell is empty"},
		"a bar":             {"nothing", `a \| b`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := good
			if tc.old != "" {
				text = strings.ReplaceAll(good, tc.old, tc.new)
			}
			rows := readFailures("## Section\n\n| failure | what is seen |\n|---|---|\n" + text + "\n")
			if len(rows) != 1 || rows[0].section != "Section" {
				t.Fatalf("read %+v", rows)
			}
			got := strings.Join(tr.wrong(rows[0], map[string]bool{"tidemark_slot_lost": true, "tidemark_upload_failures_total": true}, map[string]bool{"TidemarkSlotLost": true}), "; ")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("seen: %q, want %q", got, tc.want)
			}
		})
	}
	if names := slices.Collect(maps.Keys(readTree(t, "../..").tests)); len(names) < 100 {
		t.Errorf("the tree has %d tests", len(names))
	}
}
