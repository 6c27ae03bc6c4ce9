package chaos

import (
	"encoding/json"
	"fmt"
	"strings"
)

// decoded is a line of test_decoding, taken apart.
type decoded struct {
	table     string // empty for a message
	operation string // in the lake's words
	// old and new are the columns that the line has; nil where it has none.
	old, new []column
	// message is what the lake has as the after image of a message.
	prefix, content string
}

// column is a name and the text of a value.
type column struct {
	name, typ, text string
	null, unchanged bool
}

// decode reads a line of test_decoding, whose form is in Postgres'
// contrib/test_decoding/test_decoding.c. A TRUNCATE of several tables gives one
// for each.
func decode(line string) ([]decoded, error) {
	bad := fmt.Errorf("do not understand the line %.200q of test_decoding", line)
	if rest, ok := strings.CutPrefix(line, "message: "); ok {
		_, rest, ok1 := strings.Cut(rest, "prefix: ")
		prefix, rest, ok2 := strings.Cut(rest, ", sz: ")
		_, content, ok3 := strings.Cut(rest, " content:")
		if !ok1 || !ok2 || !ok3 {
			return nil, bad
		}
		return []decoded{{operation: "message", prefix: prefix, content: content}}, nil
	}
	rest, ok := strings.CutPrefix(line, "table ")
	if !ok {
		return nil, bad
	}
	for _, op := range []string{"INSERT", "UPDATE", "DELETE", "TRUNCATE"} {
		table, values, found := strings.Cut(rest, ": "+op+":")
		if !found {
			continue
		}
		d := decoded{table: table, operation: strings.ToLower(op)}
		if op == "TRUNCATE" {
			var all []decoded
			for _, t := range strings.Split(table, ", ") {
				all = append(all, decoded{table: t, operation: "truncate"})
			}
			return all, nil
		}
		values, err := strings.TrimPrefix(values, " "), error(nil)
		if values == "(no-tuple-data)" {
			return []decoded{d}, nil
		}
		switch old, both := strings.CutPrefix(values, "old-key: "); {
		case both:
			var left string
			if d.old, left, err = columns(old); err == nil {
				d.new, _, err = columns(strings.TrimPrefix(left, "new-tuple: "))
			}
		case op == "DELETE":
			d.old, _, err = columns(values)
		default:
			d.new, _, err = columns(values)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", bad, err)
		}
		return []decoded{d}, nil
	}
	return nil, bad
}

// columns reads name[type]:value, with spaces between, up to the end or to
// "new-tuple: ".
func columns(s string) (all []column, rest string, err error) {
	for s != "" && !strings.HasPrefix(s, "new-tuple: ") {
		var c column
		var ok bool
		if c.name, s, ok = strings.Cut(s, "["); !ok {
			return nil, "", fmt.Errorf("no column at %.40q", s)
		}
		if c.typ, s, ok = strings.Cut(s, "]:"); !ok {
			return nil, "", fmt.Errorf("no type at %.40q", s)
		}
		if strings.HasPrefix(s, "'") {
			if c.text, s, err = quoted(s[1:]); err != nil {
				return nil, "", err
			}
		} else {
			c.text, s, _ = strings.Cut(s, " ")
			s = " " + s
			c.null, c.unchanged = c.text == "null", c.text == "unchanged-toast-datum"
		}
		s = strings.TrimPrefix(s, " ")
		all = append(all, c)
	}
	return all, s, nil
}

// quoted reads up to the closing quote; a quote inside is doubled.
func quoted(s string) (text, rest string, err error) {
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(s, "'")
		if !ok {
			return "", "", fmt.Errorf("no closing quote at %.40q", s)
		}
		b.WriteString(before)
		if !strings.HasPrefix(after, "'") {
			return b.String(), after, nil
		}
		b.WriteByte('\'')
		s = after[1:]
	}
}

// fits says why the lake's image is not what the truth has; empty if it is.
// whole says that the image has every column of the table.
func fits(want []column, image string, unchanged map[string]bool, whole bool) string {
	if image == "" {
		if len(want) > 0 {
			return "there is no image"
		}
		return ""
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal([]byte(image), &got); err != nil {
		return err.Error()
	}
	n := 0
	for _, c := range want {
		value, there := got[c.name]
		if c.unchanged {
			// The lake may know the value from an earlier change.
			if !there && !unchanged[c.name] {
				return "column " + c.name + " is neither there nor named as unchanged"
			}
			if there {
				n++
			}
			continue
		}
		if !there {
			return "column " + c.name + " is not there"
		}
		n++
		if !c.is(value) {
			return fmt.Sprintf("column %s is %.80s, committed was %.80q (null: %v)", c.name, value, c.text, c.null)
		}
	}
	if whole && n != len(got) {
		return fmt.Sprintf("it has %d columns, committed were %d", len(got), n)
	}
	return ""
}

// is says whether a JSON value is the column's.
func (c column) is(value json.RawMessage) bool {
	if c.null || string(value) == "null" {
		return c.null && string(value) == "null"
	}
	if value[0] != '"' || strings.HasPrefix(c.typ, "json") {
		return string(value) == c.text
	}
	var s string
	if err := json.Unmarshal(value, &s); err != nil {
		return false
	}
	if strings.HasPrefix(c.typ, "timestamp") {
		s = strings.TrimSuffix(strings.Replace(s, "T", " ", 1), ":00")
	}
	return s == c.text
}
