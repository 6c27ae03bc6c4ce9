package config

import "strings"

// InvalidError is everything that is wrong with a configuration, a sentence each.
type InvalidError struct{ Problems []string }

// Error puts each problem on a line of its own.
func (e *InvalidError) Error() string { return strings.Join(e.Problems, "\n") }
