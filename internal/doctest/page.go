package doctest

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// Page is one file in Markdown.
type Page struct {
	// Path is relative to the repository's root, with slashes.
	Path string
	Text string
}

// Piece is a part of a page.
type Piece struct {
	// Line is where it begins; the first is 1.
	Line int
	// Lang is what a fenced block says that it is, empty for anything else.
	Lang string
	Text string
}

// Pages reads every page of the repository whose root is given. Folders that
// begin with a dot, and testdata, have none.
func Pages(t testing.TB, root string) []Page {
	t.Helper()
	var pages []Page
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && file != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(file, ".md") {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		pages = append(pages, Page{Path: filepath.ToSlash(rel), Text: string(text)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 10 {
		t.Fatalf("found %d pages below %s; is this the repository's root?", len(pages), root)
	}
	return pages
}

// fence opens or closes a block; it may stand in a list.
var fence = regexp.MustCompile("^ *(```+)([a-z]*)")

// split gives a page's fenced blocks, and its lines without them: those are
// empty, so that each line keeps its number.
func (p Page) split() (blocks []Piece, prose []string) {
	var open string
	for i, line := range strings.Split(p.Text, "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case open == "" && m == nil:
			prose = append(prose, line)
			continue
		case open == "":
			open = m[1]
			blocks = append(blocks, Piece{Line: i + 2, Lang: m[2]})
		case m != nil && m[1] == open && m[2] == "":
			open = ""
		default:
			blocks[len(blocks)-1].Text += line + "\n"
		}
		prose = append(prose, "")
	}
	return blocks, prose
}

// Blocks are the page's fenced blocks.
func (p Page) Blocks() []Piece {
	blocks, _ := p.split()
	return blocks
}

var (
	inlineCode = regexp.MustCompile("`([^`]+)`")
	target     = regexp.MustCompile(`!?\[[^\]]*\]\(([^)\s]+)\)`)
	// attribute is how HTML within a page leads elsewhere.
	attribute = regexp.MustCompile(`\b(?:src|srcset|href)="([^"]+)"`)
	heading   = regexp.MustCompile(`^(#{1,6}) +(.+?) *#*$`)
)

// Code is what stands in `back quotes` outside of blocks.
func (p Page) Code() []Piece {
	return p.find(func(line string) [][]string { return inlineCode.FindAllStringSubmatch(line, -1) })
}

// Links are the targets of links and pictures.
func (p Page) Links() []Piece {
	return p.find(func(line string) [][]string {
		// A link's text may be code, code is never a link.
		line = inlineCode.ReplaceAllString(line, "")
		return append(target.FindAllStringSubmatch(line, -1), attribute.FindAllStringSubmatch(line, -1)...)
	})
}

func (p Page) find(in func(line string) [][]string) []Piece {
	_, prose := p.split()
	var found []Piece
	for i, line := range prose {
		for _, m := range in(line) {
			found = append(found, Piece{Line: i + 1, Text: m[1]})
		}
	}
	return found
}

// Heading is where a link may lead within a page.
type Heading struct {
	// Line is where it stands, Level the number of its #.
	Line, Level int
	// Anchor is what a link to it has after #, as GitHub makes it of the text:
	// https://docs.github.com/en/get-started/writing-on-github/getting-started-with-writing-and-formatting-on-github/basic-writing-and-formatting-syntax#section-links
	Anchor string
}

// Headings are the page's, in order.
func (p Page) Headings() []Heading {
	_, prose := p.split()
	var found []Heading
	times := map[string]int{}
	for i, line := range prose {
		m := heading.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		a := anchorOf(m[2])
		times[a]++
		if n := times[a]; n > 1 {
			a += "-" + strconv.Itoa(n-1)
		}
		found = append(found, Heading{Line: i + 1, Level: len(m[1]), Anchor: a})
	}
	return found
}

// Has says whether the page has a heading with an anchor.
func (p Page) Has(anchor string) bool {
	return slices.ContainsFunc(p.Headings(), func(h Heading) bool { return h.Anchor == anchor })
}

var linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

func anchorOf(title string) string {
	title = strings.ToLower(linkText.ReplaceAllString(title, "$1"))
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsNumber(r):
			return r
		}
		return -1
	}, title)
}

// Resolve gives the page or file that a relative link on p leads to, from the
// root on, and the anchor there. A link that is only an anchor leads to p.
func (p Page) Resolve(link string) (file, anchor string) {
	file, anchor, _ = strings.Cut(link, "#")
	if file == "" {
		return p.Path, anchor
	}
	return path.Join(path.Dir(p.Path), file), anchor
}

// Find gives the page with a path.
func Find(pages []Page, path string) (Page, bool) {
	i := slices.IndexFunc(pages, func(p Page) bool { return p.Path == path })
	if i < 0 {
		return Page{}, false
	}
	return pages[i], true
}
