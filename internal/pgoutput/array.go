package pgoutput

import "bytes"

// maxDimensions of an array: MAXDIM in src/include/c.h.
const maxDimensions = 6

// array appends the text form of an array (array_out in
// src/backend/utils/adt/arrayfuncs.c) as array_to_json does: nested by its
// dimensions, and without its lower bounds.
func (w *writer) array(dst []byte, sh *shape, text []byte) ([]byte, bool) {
	start, mark := len(dst), len(w.scratch)
	dst, ok := w.bounded(dst, sh, text)
	if !ok && w.composites == 0 {
		w.scratch = w.scratch[:mark]
		return appendText(dst[:start], text), true
	}
	return dst, ok
}

// bounded appends an array after its bounds, [1:2][-3:-2]=, which are there if a
// lower one is not 1.
func (w *writer) bounded(dst []byte, sh *shape, text []byte) ([]byte, bool) {
	if len(text) > 0 && text[0] == '[' {
		i := bytes.IndexByte(text, '=')
		if i < 0 || len(bytes.Trim(text[:i], "[]:-0123456789")) > 0 {
			return dst, false
		}
		text = text[i+1:]
	}
	if string(text) == "{}" {
		return append(dst, "[]"...), true
	}
	dst, rest, ok := w.dimension(dst, sh, text, 1)
	return dst, ok && len(rest) == 0
}

// dimension appends what stands between one pair of braces, which text begins
// with, and gives what follows them.
func (w *writer) dimension(dst []byte, sh *shape, text []byte, depth int) (_, rest []byte, ok bool) {
	if len(text) == 0 || text[0] != '{' || depth > maxDimensions {
		return dst, nil, false
	}
	dst = append(dst, '[')
	for {
		text = text[1:] // the brace or delimiter
		if len(text) == 0 {
			return dst, nil, false
		}
		switch text[0] {
		case '{':
			dst, text, ok = w.dimension(dst, sh, text, depth+1)
		case '"':
			var element []byte
			mark := len(w.scratch)
			if element, text, ok = w.quoted(text); ok {
				dst, ok = w.value(dst, sh.element, element)
			}
			w.scratch = w.scratch[:mark]
		default:
			dst, text, ok = w.bare(dst, sh, text)
		}
		if !ok || len(text) == 0 {
			return dst, nil, false
		}
		switch text[0] {
		case sh.delimiter:
			dst = append(dst, ',')
		case '}':
			return append(dst, ']'), text[1:], true
		default:
			return dst, nil, false
		}
	}
}

// bare appends an element that is not quoted, or NULL, and gives what follows
// it. It is never empty, and an element that reads NULL is quoted.
func (w *writer) bare(dst []byte, sh *shape, text []byte) (_, rest []byte, ok bool) {
	n := 0
	for n < len(text) && text[n] != sh.delimiter && text[n] != '}' {
		if c := text[n]; c == '"' || c == '\\' || c == '{' {
			return dst, nil, false
		}
		n++
	}
	if n == 0 {
		return dst, nil, false
	}
	if string(text[:n]) == "NULL" {
		return append(dst, "null"...), text[n:], true
	}
	dst, ok = w.value(dst, sh.element, text[:n])
	return dst, text[n:], ok
}

// quoted gives the content of the quotes that text begins with, and what follows
// them. A backslash stands before each quote and backslash within. The content
// lies in text, or, if it had to be unescaped, on the scratch stack.
func (w *writer) quoted(text []byte) (content, rest []byte, ok bool) {
	text = text[1:]
	mark, from := len(w.scratch), 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			w.scratch = append(w.scratch, text[from:i]...)
			i++
			from = i // whatever it is, it stands for itself
		case '"':
			if len(w.scratch) == mark && from == 0 {
				return text[:i], text[i+1:], true
			}
			w.scratch = append(w.scratch, text[from:i]...)
			return w.scratch[mark:], text[i+1:], true
		}
	}
	return nil, nil, false
}

// vector appends the text form of an int2vector or oidvector, numbers with one
// space between them. To to_json it is an array.
func (w *writer) vector(dst []byte, sh *shape, text []byte) ([]byte, bool) {
	dst = append(dst, '[')
	for len(text) > 0 {
		number, rest, more := bytes.Cut(text, []byte(" "))
		if !isNumber(number) || more && len(rest) == 0 {
			return dst, false
		}
		var ok bool
		if dst, ok = w.value(dst, sh.element, number); !ok {
			return dst, false
		}
		if more {
			dst = append(dst, ',')
		}
		text = rest
	}
	return append(dst, ']'), true
}
