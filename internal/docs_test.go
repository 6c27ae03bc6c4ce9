package internal_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/doctest"
)

// wrongLinks says what is wrong with a page's links. Those that lead out are
// looked at and not followed. exists says whether there is such a file, from the
// repository's root on.
func wrongLinks(p doctest.Page, pages []doctest.Page, exists func(file string) bool) []string {
	var wrong []string
	for _, l := range p.Links() {
		say := func(format string, args ...any) {
			wrong = append(wrong, fmt.Sprintf("%s:%d: the link to %s: ", p.Path, l.Line, l.Text)+fmt.Sprintf(format, args...))
		}
		u, err := url.Parse(l.Text)
		switch {
		case err != nil:
			say("%v", err)
		case u.Scheme != "":
			if u.Scheme != "https" || !strings.Contains(u.Host, ".") {
				say("want https and a host")
			}
		default:
			file, anchor := p.Resolve(l.Text)
			to, isPage := doctest.Find(pages, file)
			switch {
			case !isPage && !exists(file):
				say("there is no %s", file)
			case anchor != "" && !to.Has(anchor):
				say("%s has no heading for #%s", file, anchor)
			}
		}
	}
	return wrong
}

func existsBelowRoot(file string) bool {
	_, err := os.Stat(filepath.Join("..", filepath.FromSlash(file)))
	return err == nil
}

func TestLinksOfTheDocumentationLeadSomewhere(t *testing.T) {
	pages := doctest.Pages(t, "..")
	for _, p := range pages {
		for _, text := range wrongLinks(p, pages, existsBelowRoot) {
			t.Error(text)
		}
	}
}

// A page that nothing leads to is not found by anybody.
func TestEveryPageIsLinkedFromAnother(t *testing.T) {
	pages := doctest.Pages(t, "..")
	linked := map[string]bool{"README.md": true}
	for _, p := range pages {
		for _, l := range p.Links() {
			if file, _ := p.Resolve(l.Text); file != p.Path {
				linked[file] = true
				// A link to a folder shows its README.
				linked[file+"/README.md"] = true
			}
		}
	}
	for _, p := range pages {
		if strings.HasPrefix(p.Path, "docs/") && !linked[p.Path] {
			t.Errorf("no page links to %s", p.Path)
		}
	}
}

// missingInContents gives the sections that a page's list of its own sections,
// before the first of them, does not have. A page with fewer than three such
// links has no list.
func missingInContents(p doctest.Page) []string {
	sections := p.Headings()
	sections = slices.DeleteFunc(sections, func(h doctest.Heading) bool { return h.Level != 2 })
	var listed, missing []string
	for _, l := range p.Links() {
		if anchor, own := strings.CutPrefix(l.Text, "#"); own && len(sections) > 0 && l.Line < sections[0].Line {
			listed = append(listed, anchor)
		}
	}
	for _, h := range sections {
		if len(listed) >= 3 && !slices.Contains(listed, h.Anchor) {
			missing = append(missing, fmt.Sprintf("%s:%d: the page's table of contents has no link to #%s", p.Path, h.Line, h.Anchor))
		}
	}
	return missing
}

func TestTablesOfContentsAreComplete(t *testing.T) {
	for _, p := range doctest.Pages(t, "..") {
		for _, text := range missingInContents(p) {
			t.Error(text)
		}
	}
}

// program knows what may follow a program's name in the documentation.
type program func(args []string) error

// oneOf takes names for the first argument.
func oneOf(what string, names []string) program {
	return func(args []string) error {
		if len(args) > 0 && !strings.HasPrefix(args[0], "-") && !slices.Contains(names, args[0]) {
			return fmt.Errorf("there is no %s %s", what, args[0])
		}
		return nil
	}
}

// namesIn are the first groups of what a file has of pattern.
func namesIn(t *testing.T, file, pattern string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(file))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
		names = append(names, m[1])
	}
	if len(names) < 3 {
		t.Fatalf("%s has %q only of %s", file, names, pattern)
	}
	return names
}

// goPackages wants the relative paths in a go command to be folders.
func goPackages(args []string) error {
	for _, a := range args {
		if strings.HasPrefix(a, "./") && a != "./..." && !existsBelowRoot(a) {
			return fmt.Errorf("there is no folder %s", a)
		}
	}
	return nil
}

func wrongCommands(p doctest.Page, programs map[string]program) []string {
	var names, wrong []string
	for name := range programs {
		names = append(names, name)
	}
	for _, c := range p.Commands(names...) {
		if check, known := programs[c.Words[0]]; known {
			if err := check(c.Words[1:]); err != nil {
				wrong = append(wrong, fmt.Sprintf("%s:%d: %s: %v", p.Path, c.Line, strings.Join(c.Words, " "), err))
			}
		}
	}
	return wrong
}

// What the pages tell people to run is there: targets of make, verbs of
// devstack, folders of Go packages. package main of cmd/tidemark holds its own
// commands against its verbs and flags.
func TestDocumentedCommandsExist(t *testing.T) {
	targets := namesIn(t, "../Makefile", `(?m)^([a-z0-9-]+):`)
	verbs := namesIn(t, "../cmd/devstack/main.go", `(?m)^\t\t\{"(\w+)", `)
	programs := map[string]program{
		"make":         oneOf("target", targets),
		"bin/devstack": oneOf("verb", verbs),
		"go":           goPackages,
	}
	for _, p := range doctest.Pages(t, "..") {
		for _, text := range wrongCommands(p, programs) {
			t.Error(text)
		}
	}
}

var (
	settingRow  = regexp.MustCompile("(?m)^\\| `([a-z]+)\\.([a-z_]+)` \\|")
	settingName = regexp.MustCompile(`^([a-z]+)\.([a-z_]+)(:.*)?$`)
)

// wrongSettings says which names in `back quotes` look like settings and are none.
func wrongSettings(p doctest.Page, settings map[string][]string) []string {
	var wrong []string
	for _, c := range p.Code() {
		m := settingName.FindStringSubmatch(c.Text)
		if m == nil || slices.Contains([]string{"go", "md", "json", "yaml", "yml", "toml", "log", "mod"}, m[2]) {
			continue
		}
		if names, section := settings[m[1]]; section && !slices.Contains(names, m[2]) {
			wrong = append(wrong, fmt.Sprintf("%s:%d: there is no setting %s.%s", p.Path, c.Line, m[1], m[2]))
		}
	}
	return wrong
}

// The reference is held against the program where it is written.
func TestDocumentedSettingsExist(t *testing.T) {
	pages := doctest.Pages(t, "..")
	reference, ok := doctest.Find(pages, "docs/configuration.md")
	if !ok {
		t.Fatal("docs/configuration.md is missing")
	}
	settings := map[string][]string{}
	for _, m := range settingRow.FindAllStringSubmatch(reference.Text, -1) {
		settings[m[1]] = append(settings[m[1]], m[2])
	}
	if len(settings["lake"]) == 0 || len(settings["postgres"]) == 0 {
		t.Fatalf("the reference has the settings %v only", settings)
	}
	for _, p := range pages {
		for _, text := range wrongSettings(p, settings) {
			t.Error(text)
		}
	}
}

func TestWhatIsWrongInTheDocumentationIsSeen(t *testing.T) {
	pages := []doctest.Page{{Path: "docs/a.md", Text: "# One thing\n"}}
	exists := func(file string) bool { return file == "Makefile" || file == "docs" }
	programs := map[string]program{"make": oneOf("target", []string{"build", "demo"}), "go": goPackages}
	settings := map[string][]string{"lake": {"url", "region"}}
	for text, want := range map[string]string{
		"[good](a.md#one-thing), [file](../Makefile), [folder](../docs)": "",
		"[gone](b.md)":         "there is no docs/b.md",
		"[moved](a.md#two)":    "docs/a.md has no heading for #two",
		"[own](#none)":         "docs/p.md has no heading",
		"![picture](x.png)":    "there is no docs/x.png",
		`<img src="y.svg">`:    "there is no docs/y.svg",
		"[out](http://a.com/)": "want https",
		"[out](https://a/)":    "want https and a host",
		"[odd](https://a.b:c)": "invalid port",
		"`[no](b.md)`":         "",

		"`make build`, `make`, `make demo ONCE=1`": "",
		"`make war`":                                                  "there is no target war",
		"```sh\ncd x && make war\n```\n":                              "docs/p.md:2: make war: there is no target war",
		"```text\nmake war\n```\n":                                    "",
		"`go test ./internal/doctest -run X`":                         "",
		"`go test ./nowhere`":                                         "there is no folder ./nowhere",
		"`lake.url`, `lake.url: s3://b`, `go.mod`":                    "",
		"[a](#a) [b](#b) [c](#c)\n## A\n## B\n## C\n### Not listed\n": "",
		"[a](#a) [b](#b) [b](#b)\n## A\n## B\n## C\n":                 "docs/p.md:4: the page's table of contents has no link to #c",
		"[a](#a)\n## A\n[b](#b), [b](#b)\n## B\n":                     "",
		"`lake.uri`": "there is no setting lake.uri",
	} {
		p := doctest.Page{Path: "docs/p.md", Text: text}
		got := slices.Concat(wrongLinks(p, append(pages, p), exists), wrongCommands(p, programs), wrongSettings(p, settings), missingInContents(p))
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0], want)) {
			t.Errorf("in %s is found %q, want %q", text, got, want)
		}
	}
}
