package doctest

import (
	"regexp"
	"strings"
)

// Command is a simple command that a page shows.
type Command struct {
	Line  int
	Words []string
}

// Commands are those of a page's shell blocks, and what begins with one of
// programs in `back quotes`. Of a block in the language console, lines that
// begin with "$ " are commands, and the others what they print.
func (p Page) Commands(programs ...string) []Command {
	var found []Command
	for _, b := range p.Blocks() {
		switch b.Lang {
		case "sh", "bash":
			found = append(found, parse(b.Text, b.Line)...)
		case "console":
			for i, line := range strings.Split(b.Text, "\n") {
				if command, ok := strings.CutPrefix(line, "$ "); ok {
					found = append(found, parse(command, b.Line+i)...)
				}
			}
		}
	}
	for _, c := range p.Code() {
		for _, program := range programs {
			if strings.HasPrefix(c.Text, program+" ") {
				found = append(found, parse(c.Text, c.Line)...)
			}
		}
	}
	return found
}

// before is what may stand before a program.
var before = regexp.MustCompile(`^(\w+=.*|sudo|exec|nohup|time)$`)

// parse reads shell text: words, quotes, comments, and what separates commands.
// The bodies of here-documents are left out. What it does not know, such as
// loops, comes out as commands of other programs.
func parse(text string, line int) []Command {
	var found []Command
	var words []string
	var word strings.Builder
	inWord := false
	start := line
	until := "" // the word that ends a here-document
	endWord := func() {
		if inWord {
			words = append(words, word.String())
		}
		word.Reset()
		inWord = false
	}
	endCommand := func() {
		endWord()
		for i, w := range words {
			// Redirections are no arguments.
			if marker, ok := strings.CutPrefix(w, "<<"); ok {
				until = strings.Trim(strings.TrimPrefix(marker, "-"), `'"`)
			}
			if strings.ContainsAny(w[:min(1, len(w))], "<>") || strings.HasPrefix(w, "2>") {
				words = words[:i]
				break
			}
		}
		for len(words) > 0 && before.MatchString(words[0]) {
			words = words[1:]
		}
		if len(words) > 0 {
			found = append(found, Command{Line: start, Words: words})
		}
		words = nil
	}
	quote := rune(0)
	skipping := false // a comment
	runes := []rune(text)
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		if r == '\n' {
			line++
		}
		switch {
		case skipping && r != '\n':
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == '\\' && i+1 < len(runes) && runes[i+1] == '\n':
			i++
			line++
			endWord()
		case r == '#' && !inWord:
			skipping = true
		case r == '\n':
			skipping = false
			endCommand()
			if until != "" {
				rest := string(runes[i+1:])
				body, _, _ := strings.Cut(rest+"\n", "\n"+until+"\n")
				n := len([]rune(body)) + len([]rune(until)) + 1
				line += strings.Count(body, "\n") + 1
				i += min(n, len(runes)-i-1)
				until = ""
			}
			start = line
		case r == '&' && i > 0 && runes[i-1] == '>':
			word.WriteRune(r)
		case strings.ContainsRune(";|&()", r):
			endCommand()
			start = line
		case r == ' ' || r == '\t':
			endWord()
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	endCommand()
	return found
}
