package doctest

import (
	"reflect"
	"slices"
	"testing"
)

const sample = "# The `first`, and *only*\n" +
	"See [there](other.md#a-b), ![a picture](images/x.svg) and [`code`](c.md), not `[this](no.md)`.\n" +
	"## Twice\n## Twice\n### [Linked](x.md): a_b\n" +
	"<img src=\"images/y.svg\">\n" +
	"```sh\n" +
	"# not a heading, but `a comment`\n" +
	"FOO=bar sudo tidemark check --config 'a b.yaml' | less   # really\n" +
	"tidemark \\\n  verify && make demo ONCE=1\n" +
	"psql shop <<'E'\nmake war;\nE\n" +
	"tidemark run > log 2>&1 &\n" +
	"```\n" +
	"Then `tidemark status --watch`, and `tidemark_up`.\n" +
	"```console\n$ tidemark version\ntidemark 1\n```\n"

func TestAPageIsTakenApart(t *testing.T) {
	p := Page{Path: "docs/sample.md", Text: sample}
	if got, want := p.Headings(), []Heading{{1, 1, "the-first-and-only"}, {3, 2, "twice"}, {4, 2, "twice-1"}, {5, 3, "linked-a_b"}}; !slices.Equal(got, want) {
		t.Errorf("headings %v, want %v", got, want)
	}
	var links []string
	for _, l := range p.Links() {
		links = append(links, l.Text)
	}
	if want := []string{"other.md#a-b", "images/x.svg", "c.md", "x.md", "images/y.svg"}; !slices.Equal(links, want) {
		t.Errorf("links %q, want %q", links, want)
	}
	want := []Command{
		{9, []string{"tidemark", "check", "--config", "a b.yaml"}},
		{9, []string{"less"}},
		{10, []string{"tidemark", "verify"}},
		{11, []string{"make", "demo", "ONCE=1"}},
		{12, []string{"psql", "shop"}},
		{15, []string{"tidemark", "run"}},
		{19, []string{"tidemark", "version"}},
		{17, []string{"tidemark", "status", "--watch"}},
	}
	if got := p.Commands("tidemark"); !reflect.DeepEqual(got, want) {
		t.Errorf("commands\n%v\nwant\n%v", got, want)
	}
}

func TestALinkIsRelativeToItsPage(t *testing.T) {
	p := Page{Path: "docs/decisions/0001.md"}
	for link, want := range map[string][2]string{
		"../design.md#ring": {"docs/design.md", "ring"},
		"#here":             {"docs/decisions/0001.md", "here"},
		"README.md":         {"docs/decisions/README.md", ""},
	} {
		if file, anchor := p.Resolve(link); [2]string{file, anchor} != want {
			t.Errorf("%s leads to %s#%s, want %s", link, file, anchor, want)
		}
	}
}
