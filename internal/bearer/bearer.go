// Package bearer is the tokens by which a caller shows that it may: read from
// files that are followed, and compared without telling anything by the time it
// takes. No error and no log line of it has a token.
//
// Packages flight and ops use it.
package bearer

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"strings"

	"github.com/tidemark-cdc/tidemark/internal/reload"
)

// Tokens are those of a file, one a line. A side that checks accepts each of
// them and one that sends takes the first, so that a token can be replaced
// without a moment in which the two disagree: add the new one below the old one
// on both sides, swap them, remove the old one. Safe for concurrent use.
type Tokens struct{ file *reload.Value[[]string] }

// Follow reads the token file at path, and again whenever it has changed. what
// names it in logs and errors.
func Follow(what, path string, log *slog.Logger) (*Tokens, error) {
	file, err := reload.New(what, []string{path}, log, func(files [][]byte) ([]string, error) {
		tokens := strings.Fields(string(files[0]))
		if len(tokens) == 0 {
			return nil, errors.New("it holds no token")
		}
		for _, t := range tokens {
			for i := range len(t) {
				if t[i] < 0x21 || t[i] > 0x7E {
					return nil, errors.New("a token holds a character that is not printable ASCII")
				}
			}
		}
		return tokens, nil
	})
	if err != nil {
		return nil, err
	}
	return &Tokens{file}, nil
}

// First is the token to send.
func (t *Tokens) First() (string, error) {
	tokens, err := t.file.Get()
	if err != nil {
		return "", err
	}
	return tokens[0], nil
}

// Accepts says whether got is one of the tokens. It takes a time that depends on
// neither the contents nor, thanks to the hash, the lengths.
func (t *Tokens) Accepts(got string) (bool, error) {
	tokens, err := t.file.Get()
	if err != nil {
		return false, err
	}
	g := sha256.Sum256([]byte(got))
	found := 0
	for _, w := range tokens {
		h := sha256.Sum256([]byte(w))
		found |= subtle.ConstantTimeCompare(g[:], h[:])
	}
	return found == 1, nil
}
