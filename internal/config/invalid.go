package config

import "strings"

// Invalid is everything that is wrong with a configuration, a sentence each.
type Invalid struct{ Problems []string }

// Error puts each problem on a line of its own.
func (e *Invalid) Error() string { return strings.Join(e.Problems, "\n") }
