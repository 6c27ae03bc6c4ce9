package pgoutput

// composite appends the text form of a row value (record_out in
// src/backend/utils/adt/rowtypes.c) as composite_to_json does. A value with
// another number of fields than the facts was written before or after its type
// was altered, and does not fit.
func (w *writer) composite(dst []byte, sh *shape, text []byte) ([]byte, bool) {
	if len(text) < 2 || text[0] != '(' {
		return dst, false
	}
	if len(sh.fields) == 0 {
		return append(dst, "{}"...), string(text) == "()"
	}
	dst = append(dst, '{')
	for i := range sh.fields {
		f := &sh.fields[i]
		text = text[1:] // the parenthesis or comma
		if len(text) == 0 {
			return dst, false
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, f.label...)
		var ok bool
		if dst, text, ok = w.field(dst, f.shape, text); !ok || len(text) == 0 {
			return dst, false
		}
		if want := byte(','); i < len(sh.fields)-1 && text[0] != want {
			return dst, false
		}
	}
	return append(dst, '}'), string(text) == ")"
}

// field appends the field that text begins with and gives what follows it.
func (w *writer) field(dst []byte, sh *shape, text []byte) (_, rest []byte, ok bool) {
	switch text[0] {
	case ',', ')': // nothing at all is null; an empty text is quoted
		return append(dst, "null"...), text, true
	case '"':
		mark := len(w.scratch)
		content, rest, ok := w.doubled(text)
		if ok {
			dst, ok = w.value(dst, sh, content)
		}
		w.scratch = w.scratch[:mark]
		return dst, rest, ok
	}
	n := 0
	for n < len(text) && text[n] != ',' && text[n] != ')' {
		if c := text[n]; c == '"' || c == '\\' || c == '(' {
			return dst, nil, false
		}
		n++
	}
	dst, ok = w.value(dst, sh, text[:n])
	return dst, text[n:], ok
}

// doubled gives the content of the quotes that text begins with, and what
// follows them. Quotes and backslashes within are doubled. The content lies in
// text, or, if it had to be unescaped, on the scratch stack.
func (w *writer) doubled(text []byte) (content, rest []byte, ok bool) {
	text = text[1:]
	mark, from := len(w.scratch), 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '"' && c != '\\' {
			continue
		}
		if i+1 < len(text) && text[i+1] == c {
			w.scratch = append(w.scratch, text[from:i]...)
			i++
			from = i
			continue
		}
		if c == '\\' {
			return nil, nil, false
		}
		if len(w.scratch) == mark && from == 0 {
			return text[:i], text[i+1:], true
		}
		w.scratch = append(w.scratch, text[from:i]...)
		return w.scratch[mark:], text[i+1:], true
	}
	return nil, nil, false
}
