package pgoutput

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// maxScratch bounds the buffer for unescaped text that is kept from one row to
// the next, in bytes.
const maxScratch = 1 << 20

// writer writes the texts of values as JSON, as datum_to_json in
// src/backend/utils/adt/json.c does. The zero writer is ready.
type writer struct {
	// scratch is a stack of unescaped elements and fields. A slice of it stays
	// as it is while its owner lives: what is pushed after it lies behind it, or
	// in a larger copy.
	scratch []byte
	// composites counts those that are being written. Their facts may be stale,
	// so that no text in them is trusted to be of its type.
	composites int
}

// column appends the value of a column, which is not null. A boolean or json
// that cannot be one is ErrMalformed; an array or composite that does not fit
// its shape is written as the string of its text.
func (w *writer) column(dst []byte, sh *shape, text []byte) ([]byte, error) {
	switch sh.class {
	case classString:
		return appendText(dst, text), nil
	case classBool:
		if dst, ok := appendBool(dst, text); ok {
			return dst, nil
		}
		return nil, malformed("a boolean is neither t nor f")
	case classJSON:
		if len(text) == 0 {
			return nil, malformed("a json value is empty")
		}
	}
	start := len(dst)
	dst, ok := w.value(dst, sh, text)
	if !ok {
		dst = appendText(dst[:start], text)
	}
	if cap(w.scratch) > maxScratch {
		w.scratch = nil
	}
	return dst, nil
}

// value appends a value, or says that it does not fit its shape; what dst holds
// beyond its length before is of no use then.
//
// Composites, and arrays outside of any, catch that for what is in them, and are
// written as their text: so of a composite with stale facts nothing is guessed,
// and what surrounds it is as it should be.
func (w *writer) value(dst []byte, sh *shape, text []byte) ([]byte, bool) {
	switch sh.class {
	case classNumber:
		if isNumber(text) {
			return append(dst, text...), true
		}
		return appendText(dst, text), true
	case classBool:
		return appendBool(dst, text)
	case classJSON:
		if w.composites > 0 && !json.Valid(text) {
			return dst, false
		}
		return appendJSON(dst, text), true
	case classTimestamp, classTimestampTZ:
		return appendTimestamp(dst, text, sh.class == classTimestampTZ), true
	case classArray:
		return w.array(dst, sh, text)
	case classVector:
		return w.vector(dst, sh, text)
	case classComposite:
		start, mark := len(dst), len(w.scratch)
		w.composites++
		dst, ok := w.composite(dst, sh, text)
		w.composites--
		if !ok {
			w.scratch = w.scratch[:mark]
			return appendText(dst[:start], text), true
		}
		return dst, true
	}
	return appendText(dst, text), true
}

func appendBool(dst, text []byte) ([]byte, bool) {
	switch string(text) {
	case "t":
		return append(dst, "true"...), true
	case "f":
		return append(dst, "false"...), true
	}
	return dst, false
}

// hexKey is the only key of the object that stands for a text which is not valid
// UTF-8; its value is the text's bytes in lower-case hexadecimal.
const hexKey = "tidemark_hex"

// appendText appends text as a JSON string. Text that is not valid UTF-8, which
// a SQL_ASCII database can hold, becomes {"tidemark_hex":"..."}, which nothing
// but a json value can be mistaken for.
func appendText(dst, text []byte) []byte {
	if !utf8.Valid(text) {
		return appendHex(dst, text)
	}
	return appendString(dst, text)
}

// appendJSON embeds a json value as it stands. One that is not valid UTF-8, or
// that has the letters of the object that stands for such values, becomes that
// object, so that the object always means the same.
func appendJSON(dst, text []byte) []byte {
	if !utf8.Valid(text) || bytes.Contains(text, []byte(hexKey)) {
		return appendHex(dst, text)
	}
	return append(dst, text...)
}

func appendHex(dst, text []byte) []byte {
	dst = append(dst, `{"`+hexKey+`":"`...)
	for _, c := range text {
		dst = append(dst, hexDigits[c>>4], hexDigits[c&0xF])
	}
	return append(dst, `"}`...)
}

// appendTimestamp turns ISO style, 2026-01-02 03:04:05.6+00, into the ISO 8601
// that to_json writes, 2026-01-02T03:04:05.6+00:00 (JsonEncodeDateTime). The
// session's time zone is UTC, so the offset has no minutes. "infinity" and
// "-infinity" hold no space and stay; " BC" stays behind.
func appendTimestamp(dst, text []byte, tz bool) []byte {
	i := bytes.IndexByte(text, ' ')
	if i < 0 || !isTimestamp(text) {
		return appendText(dst, text)
	}
	start := len(dst)
	dst = append(dst, '"')
	dst = append(dst, text[:i]...)
	dst = append(dst, 'T')
	clock, era, bc := bytes.Cut(text[i+1:], []byte(" "))
	dst = append(dst, clock...)
	if tz {
		if !bytes.HasSuffix(clock, []byte("+00")) {
			// Another zone than the pinned one: as it stands, rather than wrong.
			return appendString(dst[:start], text)
		}
		dst = append(dst, ":00"...)
	}
	if bc {
		dst = append(dst, ' ')
		dst = append(dst, era...)
	}
	return append(dst, '"')
}

// isTimestamp says whether text is made of what timestamps in ISO style are made
// of, none of which JSON escapes.
func isTimestamp(text []byte) bool {
	for _, c := range text {
		switch {
		case '0' <= c && c <= ':', c == '-', c == '+', c == '.', c == ' ', c == 'B', c == 'C':
		default:
			return false
		}
	}
	return true
}
