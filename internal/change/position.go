package change

import (
	"cmp"
	"fmt"
	"strconv"
)

// Timeline is a Postgres timeline ID. A live server's is 1 or more; zero is
// "none".
type Timeline uint32

// MaxOrdinal is the largest ordinal that a position's text form can hold:
// ten hexadecimal digits.
const MaxOrdinal = 1<<40 - 1

// PositionLen is the length of a position's text form in bytes.
const PositionLen = 8 + 1 + 16 + 1 + 10

// Position is where a change stands in the stream, and its identity: the same
// change has the same position however often it is read, from whichever
// connection. Positions are totally ordered by (Timeline, LSN, Ordinal), and
// that is stream order. The zero Position is "none" and precedes all others.
type Position struct {
	// Timeline is the one on which LSN was written.
	Timeline Timeline
	// LSN is the transaction's commit LSN as its Begin message announces it
	// (the start of the commit record, not its end). For a non-transactional
	// logical message it is the message's LSN minus one.
	LSN LSN
	// Ordinal counts the changes of the transaction from 0 in stream order,
	// before any filtering. At most MaxOrdinal.
	Ordinal uint64
}

// JustBefore is the position that precedes every change whose commit LSN is at
// or above lsn on timeline tl and follows every change below. A slot that
// starts at lsn has nothing in the lake yet: its first segment follows
// JustBefore(tl, lsn). Nothing ever stands at this position itself.
func JustBefore(tl Timeline, lsn LSN) Position {
	return Position{Timeline: tl, LSN: lsn - 1, Ordinal: MaxOrdinal}
}

// IsZero says whether p is "none".
func (p Position) IsZero() bool { return p == Position{} }

// Compare is -1, 0 or +1 as p stands before, at or after q in the stream.
func (p Position) Compare(q Position) int {
	if c := cmp.Compare(p.Timeline, q.Timeline); c != 0 {
		return c
	}
	if c := cmp.Compare(p.LSN, q.LSN); c != 0 {
		return c
	}
	return cmp.Compare(p.Ordinal, q.Ordinal)
}

// Less says whether p stands before q.
func (p Position) Less(q Position) bool { return p.Compare(q) < 0 }

// String gives the fixed-width form TTTTTTTT-LLLLLLLLLLLLLLLL-NNNNNNNNNN in
// upper-case hexadecimal, so that the order of texts is the order of positions.
func (p Position) String() string {
	return string(p.AppendText(make([]byte, 0, PositionLen)))
}

// AppendText appends String to b.
func (p Position) AppendText(b []byte) []byte {
	b = appendHex(b, uint64(p.Timeline), 8)
	b = append(b, '-')
	b = appendHex(b, uint64(p.LSN), 16)
	b = append(b, '-')
	return appendHex(b, p.Ordinal, 10)
}

// ParsePosition reads what String prints, and nothing else: no lower case, no
// missing zeros, so that one position has one text.
func ParsePosition(s string) (Position, error) {
	bad := func() (Position, error) {
		return Position{}, fmt.Errorf("parse position %q: want TTTTTTTT-LLLLLLLLLLLLLLLL-NNNNNNNNNN in upper-case hexadecimal", s)
	}
	if len(s) != PositionLen || s[8] != '-' || s[25] != '-' {
		return bad()
	}
	for i := range len(s) {
		c := s[i]
		if i == 8 || i == 25 {
			continue
		}
		if !('0' <= c && c <= '9' || 'A' <= c && c <= 'F') {
			return bad()
		}
	}
	tl, _ := strconv.ParseUint(s[:8], 16, 32)
	lsn, _ := strconv.ParseUint(s[9:25], 16, 64)
	ord, _ := strconv.ParseUint(s[26:], 16, 64)
	return Position{Timeline: Timeline(tl), LSN: LSN(lsn), Ordinal: ord}, nil
}

// MarshalText is String.
func (p Position) MarshalText() ([]byte, error) { return p.AppendText(nil), nil }

// UnmarshalText is ParsePosition.
func (p *Position) UnmarshalText(b []byte) (err error) {
	*p, err = ParsePosition(string(b))
	return err
}

func appendHex(b []byte, v uint64, width int) []byte {
	const digits = "0123456789ABCDEF"
	for i := width - 1; i >= 0; i-- {
		b = append(b, digits[v>>(4*uint(i))&0xF])
	}
	return b
}
