package pgoutput

import (
	"bytes"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// class is how the text of a value becomes JSON: json_categorize_type in
// src/backend/utils/adt/json.c.
//
// Arrays, composites and types with a cast to json of their own are written as
// the string of their text form; classOf is where they get classes of their
// own, and appendValue where these are written.
type class uint8

const (
	classString class = iota
	classNumber
	classBool
	classJSON
	classTimestamp
	classTimestampTZ
)

// The type OIDs that to_json treats apart, from src/include/catalog/pg_type.dat;
// they never change. Note that oid is not among its numbers, and that a date
// reads the same in ISO style and in ISO 8601.
const (
	oidBool        = 16
	oidInt8        = 20
	oidInt2        = 21
	oidInt4        = 23
	oidJSON        = 114
	oidFloat4      = 700
	oidFloat8      = 701
	oidTimestamp   = 1114
	oidTimestampTZ = 1184
	oidNumeric     = 1700
	oidJSONB       = 3802
)

// classOf gives the class of a type, looking through domains.
func classOf(oid uint32, types []change.Type) class {
	// A chain of domains is no longer than the facts that describe it; a longer
	// walk would go in a circle, which no catalog holds.
	for range len(types) + 1 {
		base := uint32(0)
		for i := range types {
			if types[i].OID == oid && types[i].Kind == change.KindDomain {
				base = types[i].Base
				break
			}
		}
		if base == 0 {
			break
		}
		oid = base
	}
	switch oid {
	case oidInt2, oidInt4, oidInt8, oidFloat4, oidFloat8, oidNumeric:
		return classNumber
	case oidBool:
		return classBool
	case oidJSON, oidJSONB:
		return classJSON
	case oidTimestamp:
		return classTimestamp
	case oidTimestampTZ:
		return classTimestampTZ
	}
	return classString
}

// appendValue appends a value that is not null as JSON.
func appendValue(dst []byte, cl class, text []byte) ([]byte, error) {
	switch cl {
	case classNumber:
		if isNumber(text) {
			return append(dst, text...), nil
		}
	case classBool:
		switch string(text) {
		case "t":
			return append(dst, "true"...), nil
		case "f":
			return append(dst, "false"...), nil
		}
		return nil, malformed("a boolean is neither t nor f")
	case classJSON:
		if len(text) == 0 {
			return nil, malformed("a json value is empty")
		}
		return append(dst, text...), nil
	case classTimestamp, classTimestampTZ:
		return appendTimestamp(dst, text, cl == classTimestampTZ), nil
	}
	return appendString(dst, text), nil
}

// appendTimestamp turns ISO style, 2026-01-02 03:04:05.6+00, into the ISO 8601
// that to_json writes, 2026-01-02T03:04:05.6+00:00 (JsonEncodeDateTime). The
// session's time zone is UTC, so the offset has no minutes. "infinity" and
// "-infinity" hold no space and stay; " BC" stays behind.
func appendTimestamp(dst, text []byte, tz bool) []byte {
	i := bytes.IndexByte(text, ' ')
	if i < 0 || !isTimestamp(text) {
		return appendString(dst, text)
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
