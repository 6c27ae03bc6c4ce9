// Package doctest reads the project's documentation for tests that hold it
// against the program: its links, headings, code and commands. It knows as much
// of Markdown and of the shell as the pages use, and no more.
package doctest
