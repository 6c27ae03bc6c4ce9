package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// value is one field of a Config as text. Set leaves the field alone when it
// returns an error; the error says what is wanted and does not repeat the
// text, which may hold a secret.
type value interface {
	Set(text string) error
	String() string
}

type stringValue struct{ p *string }

func (v stringValue) Set(s string) error { *v.p = s; return nil }
func (v stringValue) String() string     { return *v.p }

type boolValue struct{ p *bool }

func (v boolValue) String() string { return strconv.FormatBool(*v.p) }

func (v boolValue) Set(s string) error {
	b, err := parseBool(s)
	if err == nil {
		*v.p = b
	}
	return err
}

// optBoolValue is a boolean that can be left open; its text is then empty.
type optBoolValue struct{ p **bool }

func (v optBoolValue) String() string {
	if *v.p == nil {
		return ""
	}
	return strconv.FormatBool(**v.p)
}

func (v optBoolValue) Set(s string) error {
	if s == "" {
		*v.p = nil
		return nil
	}
	b, err := parseBool(s)
	if err == nil {
		*v.p = &b
	}
	return err
}

func parseBool(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "true", "yes", "on", "1":
		return true, nil
	case "false", "no", "off", "0":
		return false, nil
	}
	return false, fmt.Errorf("want true or false")
}

type intValue struct{ p *int64 }

func (v intValue) String() string { return strconv.FormatInt(*v.p, 10) }

func (v intValue) Set(s string) error {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return fmt.Errorf("want a whole number")
	}
	*v.p = n
	return nil
}

type durationValue struct{ p *time.Duration }

func (v durationValue) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("want a duration such as 500ms, 10s or 5m")
	}
	*v.p = d
	return nil
}

// String drops the zero units that time.Duration prints: 1m, not 1m0s.
func (v durationValue) String() string {
	s := v.p.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// listValue is a list; as text its elements stand between commas. A comma within
// double quotes belongs to its element.
type listValue struct{ p *[]string }

func (v listValue) String() string { return strings.Join(*v.p, ",") }

func (v listValue) Set(s string) error {
	if s == "" {
		return v.SetList(nil)
	}
	return v.SetList(splitList(s))
}

func (v listValue) SetList(elems []string) error {
	var list []string
	for _, e := range elems {
		e = strings.TrimSpace(e)
		if e == "" {
			return fmt.Errorf("want a list without empty elements")
		}
		list = append(list, e)
	}
	*v.p = list
	return nil
}

// splitList splits at the commas outside double quotes.
func splitList(s string) []string {
	var elems []string
	from, quoted := 0, false
	for i := range len(s) {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == ',' && !quoted:
			elems = append(elems, s[from:i])
			from = i + 1
		}
	}
	return append(elems, s[from:])
}

// Size is a number of bytes. Its text form is a whole number with one of the
// units B, KiB, MiB, GiB, TiB (powers of 1024) or kB, MB, GB, TB (powers of
// 1000); without a unit it counts bytes.
type Size int64

var sizeUnits = []struct {
	name string
	size int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1},
}

// ParseSize reads the text form, with or without a space before the unit.
func ParseSize(s string) (Size, error) {
	number, unit := strings.TrimSpace(s), int64(1)
	for _, u := range sizeUnits {
		if n, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = strings.TrimSpace(n), u.size
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("want a size such as 16MiB or 1GB")
	}
	return Size(n * unit), nil
}

// String gives the largest binary unit in which the size is a whole number.
func (s Size) String() string {
	for _, u := range sizeUnits[:4] {
		if s != 0 && int64(s)%u.size == 0 {
			return strconv.FormatInt(int64(s)/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

type sizeValue struct{ p *Size }

func (v sizeValue) String() string { return v.p.String() }

func (v sizeValue) Set(text string) error {
	s, err := ParseSize(text)
	if err == nil {
		*v.p = s
	}
	return err
}
