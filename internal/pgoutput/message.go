package pgoutput

import (
	"encoding/hex"
	"unicode/utf8"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// LogicalMessage is the content of a logical message (pg_logical_emit_message).
type LogicalMessage struct {
	Transactional bool
	// LSN is the end of the message's WAL record.
	LSN    change.LSN
	Prefix []byte
	// Content is any bytes: pg_logical_emit_message takes text or bytea.
	Content []byte
}

// ParseMessage reads the raw message of a change with operation Message. Prefix
// and Content alias raw.
func ParseMessage(raw []byte) (LogicalMessage, error) {
	if len(raw) == 0 || raw[0] != 'M' {
		return LogicalMessage{}, malformed("it is no logical message")
	}
	return parseMessage(&cursor{rest: raw[1:]})
}

func parseMessage(c *cursor) (LogicalMessage, error) {
	flags := c.uint8()
	m := LogicalMessage{Transactional: flags&1 != 0, LSN: change.LSN(c.uint64()), Prefix: c.text()}
	m.Content = c.take(int(c.uint32()))
	if err := complete(c, "logical message"); err != nil {
		return LogicalMessage{}, err
	}
	if flags > 1 {
		return LogicalMessage{}, malformed("logical message has unknown flags %#x", flags)
	}
	return m, nil
}

// AppendJSON appends the message as the lake's `after` holds it: an object of
// prefix and content, or, if the content is not valid UTF-8, prefix and
// content_hex in lower-case hexadecimal.
func (m LogicalMessage) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"prefix":`...)
	dst = appendString(dst, m.Prefix)
	if utf8.Valid(m.Content) {
		dst = append(dst, `,"content":`...)
		dst = appendString(dst, m.Content)
	} else {
		dst = append(dst, `,"content_hex":"`...)
		dst = hex.AppendEncode(dst, m.Content)
		dst = append(dst, '"')
	}
	return append(dst, '}')
}
