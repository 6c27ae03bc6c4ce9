package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/config"
	"github.com/tidemark-cdc/tidemark/internal/doctest"
)

// names of the binary on the pages.
var binary = []string{"tidemark", "bin/tidemark", "/tidemark"}

// understood says why the command line does not take args, if it does not.
// Nothing is run.
func understood(args []string) error {
	root := newRoot(system{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard, terminal: func() bool { return false }})
	root.InitDefaultCompletionCmd(args...)
	root.InitDefaultHelpCmd()
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if !cmd.Runnable() && cmd.Flags().NArg() > 0 {
		return fmt.Errorf("%s has no %s", cmd.CommandPath(), cmd.Flags().Arg(0))
	}
	// Pages speak of a verb without what it needs.
	if cmd.Flags().NArg() == 0 {
		return nil
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

func wrongCommands(p doctest.Page) []string {
	var wrong []string
	for _, c := range p.Commands(binary...) {
		if !slices.Contains(binary, c.Words[0]) {
			continue
		}
		if err := understood(c.Words[1:]); err != nil {
			wrong = append(wrong, fmt.Sprintf("%s:%d: %s: %v", p.Path, c.Line, strings.Join(c.Words, " "), err))
		}
	}
	return wrong
}

// otherFiles are beginnings of YAML that is not Tidemark's, each of which says
// so in its first line.
var otherFiles = []string{"# prometheus.yml", "# autoscaler.yaml", "apiVersion:"}

// wrongSettings loads what a page has in YAML as the binary does. Pages show
// parts of a configuration, so nothing is missing in one.
func wrongSettings(t *testing.T, p doctest.Page) []string {
	t.Helper()
	var wrong []string
	for _, b := range p.Blocks() {
		if b.Lang != "yaml" || slices.ContainsFunc(otherFiles, func(s string) bool { return strings.HasPrefix(b.Text, s) }) {
			continue
		}
		file := filepath.Join(t.TempDir(), "tidemark.yaml")
		if err := os.WriteFile(file, []byte(b.Text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := config.Load(config.Sources{File: file}, 0); err != nil {
			wrong = append(wrong, fmt.Sprintf("%s:%d: %v", p.Path, b.Line, err))
		}
	}
	return wrong
}

func TestDocumentedCommandsAndSettingsAreUnderstood(t *testing.T) {
	commands := 0
	for _, p := range doctest.Pages(t, filepath.Join("..", "..")) {
		commands += len(p.Commands(binary...))
		for _, text := range slices.Concat(wrongCommands(p), wrongSettings(t, p)) {
			t.Error(text)
		}
	}
	if commands < 50 {
		t.Errorf("the pages have %d commands only", commands)
	}
}

func TestWhatIsWrongWithDocumentedCommandsIsSeen(t *testing.T) {
	for text, want := range map[string]string{
		"`tidemark check`, `tidemark segments list --state waiting`, `tidemark completion bash`, `tidemark --help`": "",
		"`tidemark segments retry 00000001-…`, `tidemark segments retry`":                                           "",
		"```sh\ntidemark run --config x.yaml --lake-url file:///x &\n```\n":                                         "",
		"`tidemark fly`":                                       `unknown command "fly"`,
		"`tidemark segments fly`":                              "fly",
		"`tidemark run --lake-uri x`":                          "unknown flag: --lake-uri",
		"`tidemark check --yes`":                               "unknown flag: --yes",
		"`tidemark verify now`":                                `unknown command "now"`,
		"```sh\nTIDEMARK_CONFIG=x bin/tidemark rum\n```\n":     "docs/p.md:2: bin/tidemark rum",
		"```console\n$ tidemark stats\nanything\n```\n":        `unknown command "stats"`,
		"```yaml\nlake:\n  url: s3://b/p\n```\n":               "",
		"```yaml\n# prometheus.yml\nscrape_configs: []\n```\n": "",
		"```yaml\nlake:\n  uri: s3://b/p\n```\n":               "lake.uri",
		"```yaml\nlakes:\n  url: s3://b/p\n```\n":              "lakes",
		"```yaml\nsegment:\n  max_age: soon\n```\n":            "segment.max_age",
	} {
		p := doctest.Page{Path: "docs/p.md", Text: text}
		got := slices.Concat(wrongCommands(p), wrongSettings(t, p))
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0], want)) {
			t.Errorf("in %s is found %q, want %q", text, got, want)
		}
	}
}
