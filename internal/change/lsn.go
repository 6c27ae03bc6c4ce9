package change

import (
	"fmt"
	"strconv"
	"strings"
)

// LSN is a byte position in the write-ahead log (pg_lsn). Zero is "none".
type LSN uint64

// String gives the form that Postgres prints, such as 16/B374D848.
func (l LSN) String() string {
	return fmt.Sprintf("%X/%X", uint32(l>>32), uint32(l))
}

// ParseLSN reads the form that Postgres prints: two hexadecimal numbers of at
// most eight digits with a slash between them (pg_lsn_in_internal in
// src/backend/utils/adt/pg_lsn.c).
func ParseLSN(s string) (LSN, error) {
	hi, lo, ok := strings.Cut(s, "/")
	if !ok || !isHex(hi) || !isHex(lo) || len(hi) > 8 || len(lo) > 8 {
		return 0, fmt.Errorf("parse LSN %q: want two hexadecimal numbers of at most 8 digits, such as 16/B374D848", s)
	}
	h, _ := strconv.ParseUint(hi, 16, 32)
	l, _ := strconv.ParseUint(lo, 16, 32)
	return LSN(h<<32 | l), nil
}

// MarshalText is String.
func (l LSN) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText is ParseLSN.
func (l *LSN) UnmarshalText(b []byte) (err error) {
	*l, err = ParseLSN(string(b))
	return err
}

func isHex(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
			return false
		}
	}
	return s != ""
}
