package pgoutput

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

func table(types []change.Type, columns ...change.Column) *change.Relation {
	return &change.Relation{OID: 1, Namespace: "public", Name: "t", Identity: 'd', Columns: columns, Types: types}
}

func TestImagesHoldWhatWasSent(t *testing.T) {
	rel := table(nil,
		change.Column{Name: "id", Type: oidInt4, Key: true},
		change.Column{Name: "v", Type: 25},
		change.Column{Name: "w", Type: 25})
	for _, c := range []struct {
		name          string
		op            change.Operation
		raw           []byte
		before, after string
		unchanged     string
	}{
		{"insert", change.Insert, row('I', 1).tuple('N', "1", "a", nil), "", `{"id":1,"v":"a","w":null}`, ""},
		{"update without an old image", change.Update, row('U', 1).tuple('N', "1", "a", nil), "", `{"id":1,"v":"a","w":null}`, ""},
		{"update of the key", change.Update, row('U', 1).tuple('K', "1", nil, nil).tuple('N', "2", "a", nil), `{"id":1}`, `{"id":2,"v":"a","w":null}`, ""},
		{"update of a full identity", change.Update, row('U', 1).tuple('O', "1", nil, "b").tuple('N', "2", "a", nil), `{"id":1,"v":null,"w":"b"}`, `{"id":2,"v":"a","w":null}`, ""},
		{"delete by key", change.Delete, row('D', 1).tuple('K', "1", nil, nil), `{"id":1}`, "", ""},
		{"delete of a full identity", change.Delete, row('D', 1).tuple('O', "1", nil, "b"), `{"id":1,"v":null,"w":"b"}`, "", ""},
		{"truncate", change.Truncate, truncate(1), "", "", ""},
		{"message", change.Message, logical(true, 1, `p"`, "c\n"), "", `{"prefix":"p\"","content":"c\n"}`, ""},
		{"message of bytes", change.Message, logical(true, 1, "p", "\xff\x00"), "", `{"prefix":"p","content_hex":"ff00"}`, ""},
		{"TOASTed, nothing known", change.Update, row('U', 1).tuple('N', "1", toasted{}, toasted{}), "", `{"id":1}`, "v w"},
		{"TOASTed, old image full", change.Update, row('U', 1).tuple('O', "1", "old v", "old w").tuple('N', "1", toasted{}, "new"), `{"id":1,"v":"old v","w":"old w"}`, `{"id":1,"v":"old v","w":"new"}`, ""},
		// A key-only image says null of what it does not hold: that is no value.
		{"TOASTed, old image of the key", change.Update, row('U', 1).tuple('K', "1", nil, nil).tuple('N', "2", toasted{}, "new"), `{"id":1}`, `{"id":2,"w":"new"}`, "v"},
		{"TOASTed key in a key image", change.Update, row('U', 1).tuple('K', "1", nil, nil).tuple('N', toasted{}, "a", "b"), `{"id":1}`, `{"id":1,"v":"a","w":"b"}`, ""},
		{"TOASTed, old image null", change.Update, row('U', 1).tuple('O', "1", nil, nil).tuple('N', "1", toasted{}, nil), `{"id":1,"v":null,"w":null}`, `{"id":1,"w":null}`, "v"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ch := change.Change{Operation: c.op, Relation: rel, Raw: c.raw}
			before, after, unchanged, err := decode(NewDecoder(), &ch)
			if err != nil {
				t.Fatal(err)
			}
			if string(before) != c.before || string(after) != c.after || strings.Join(unchanged, " ") != c.unchanged {
				t.Errorf("before %s, after %s, unchanged %s", before, after, unchanged)
			}
			if (before == nil) != (c.before == "") || (after == nil) != (c.after == "") {
				t.Errorf("before exists: %v, after exists: %v", before != nil, after != nil)
			}
		})
	}
}

func TestAValueIsWrittenByItsType(t *testing.T) {
	types := []change.Type{
		{OID: 70001, Kind: change.KindDomain, Base: oidInt4},
		{OID: 70002, Kind: change.KindDomain, Base: 70001},
		{OID: 70003, Kind: change.KindEnum},
		{OID: 70004, Kind: change.KindDomain, Base: oidJSONB},
		{OID: 70005, Kind: change.KindArray, Base: oidInt4},
		{OID: 70006, Kind: change.KindDomain, Base: 70007}, // a circle, which no catalog holds
		{OID: 70007, Kind: change.KindDomain, Base: 70006},
	}
	for _, c := range []struct {
		oid        uint32
		text, want string
	}{
		{oidInt2, "-32768", `-32768`},
		{oidInt8, "9223372036854775807", `9223372036854775807`},
		{oidNumeric, "1.500", `1.500`},
		{oidNumeric, "NaN", `"NaN"`},
		{oidFloat8, "-Infinity", `"-Infinity"`},
		{oidFloat8, "1e-07", `1e-07`},
		{oidFloat8, "-0", `-0`},
		{26, "5", `"5"`},          // oid
		{790, "$1.00", `"$1.00"`}, // money
		{oidBool, "t", `true`},
		{oidBool, "f", `false`},
		{oidJSON, ` {"a": 1.0}`, ` {"a": 1.0}`},
		{oidJSONB, `null`, `null`},
		{25, "", `""`},
		{25, "é\x7f/<>&\u2028", "\"é\x7f/<>&\u2028\""},
		{25, "\x01\x1f\b\f\n\r\t\v\"\\", `"\u0001\u001f\b\f\n\r\t\u000b\"\\"`},
		{1082, "2026-01-02", `"2026-01-02"`},
		{oidTimestamp, "2026-01-02 03:04:05", `"2026-01-02T03:04:05"`},
		{oidTimestamp, "0044-03-15 12:00:00 BC", `"0044-03-15T12:00:00 BC"`},
		{oidTimestamp, "infinity", `"infinity"`},
		{oidTimestampTZ, "2026-01-02 03:04:05.6+00", `"2026-01-02T03:04:05.6+00:00"`},
		{oidTimestampTZ, "0044-03-15 12:00:00+00 BC", `"0044-03-15T12:00:00+00:00 BC"`},
		{oidTimestampTZ, "2026-01-02 03:04:05+05:30", `"2026-01-02 03:04:05+05:30"`}, // not the pinned zone
		{70001, "1", `1`},
		{70002, "1", `1`},
		{70003, "1", `"1"`},
		{70004, "[1]", `[1]`},
		{70005, "{1,2}", `[1,2]`},
		{70006, "1", `"1"`},
		{99999, "1", `"1"`},
	} {
		rel := table(types, change.Column{Name: "c", Type: c.oid})
		ch := change.Change{Operation: change.Insert, Relation: rel, Raw: row('I', 1).tuple('N', c.text)}
		_, after, _, err := decode(NewDecoder(), &ch)
		if want := `{"c":` + c.want + `}`; err != nil || string(after) != want {
			t.Errorf("type %d: %q gives %s, error %v, want %s", c.oid, c.text, after, err, want)
		}
		if !json.Valid(after) {
			t.Errorf("type %d: %q gives no valid JSON: %s", c.oid, c.text, after)
		}
	}
}

func TestNumbersAreThoseOfJSON(t *testing.T) {
	for _, s := range []string{"0", "-0", "1", "10", "1.5", "-1.50", "0.0", "1e5", "1E-5", "1.5e+10", "01", "", "-", ".5", "1.", "1e", "+1", "NaN", "1 ", "0x1", "1e5.5", "Infinity", "--1"} {
		var n json.Number
		want := json.Unmarshal([]byte(s), &n) == nil && strings.TrimSpace(s) == s
		if got := isNumber([]byte(s)); got != want {
			t.Errorf("isNumber(%q) = %v, want %v", s, got, want)
		}
	}
}

func TestWhatDoesNotFitItsRelationIsMalformed(t *testing.T) {
	rel := table(nil, change.Column{Name: "id", Type: oidInt4, Key: true}, change.Column{Name: "b", Type: oidBool}, change.Column{Name: "j", Type: oidJSON})
	at := change.Position{Timeline: 1, LSN: 0xAB, Ordinal: 2}
	binaryValue := row('I', 1).byte('N').uint16(3).byte('b').uint32(1).byte('1').byte('n').byte('n')
	for _, c := range []struct {
		name string
		op   change.Operation
		rel  *change.Relation
		raw  []byte
		says string
	}{
		{"empty", change.Insert, rel, nil, "empty"},
		{"no relation", change.Insert, nil, row('I', 1).tuple('N', "1", nil, nil), "no relation"},
		{"another operation", change.Delete, rel, row('I', 1).tuple('N', "1", nil, nil), "is no delete"},
		{"another table", change.Insert, rel, row('I', 2).tuple('N', "1", nil, nil), "of table 2"},
		{"fewer columns", change.Insert, rel, row('I', 1).tuple('N', "1", nil), "2 columns, its relation 3"},
		{"more columns", change.Insert, rel, row('I', 1).tuple('N', "1", nil, nil, nil), "4 columns, its relation 3"},
		{"binary", change.Insert, rel, binaryValue, `column 1 is of kind 'b'`},
		{"insert with an old image", change.Insert, rel, row('I', 1).tuple('O', "1", nil, nil).tuple('N', "1", nil, nil), "old image"},
		{"update with a delete's image only", change.Update, rel, row('U', 1).tuple('K', "1", nil, nil), "new image is of kind"},
		{"delete with a new image", change.Delete, rel, row('D', 1).tuple('N', "1", nil, nil), "image of kind"},
		{"value longer than the message", change.Insert, rel, row('I', 1).byte('N').uint16(3).byte('t').uint32(1 << 31).byte('1'), "ends within column 1"},
		{"boolean that is none", change.Insert, rel, row('I', 1).tuple('N', "1", "x", nil), "column b of table public.t"},
		{"json that is none", change.Insert, rel, row('I', 1).tuple('N', "1", nil, ""), "column j of table public.t"},
		{"message of another type", change.Message, nil, row('I', 1), "no logical message"},
		{"truncate of another type", change.Truncate, rel, row('I', 1), "is no truncate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ch := change.Change{Position: at, Operation: c.op, Relation: c.rel, Raw: c.raw}
			_, _, _, err := decode(NewDecoder(), &ch)
			if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error is %v, want ErrMalformed that says %q", err, c.says)
			}
			if strings.Contains(fmt.Sprint(err), "column b") || strings.Contains(fmt.Sprint(err), "column j") {
				return // from Append, which is told its position by the caller
			}
			if !strings.Contains(err.Error(), at.String()) {
				t.Errorf("error %v does not name the position", err)
			}
			if c.rel != nil && len(c.raw) > 0 && !strings.Contains(err.Error(), "public.t") {
				t.Errorf("error %v does not name the table", err)
			}
		})
	}
}

// A value of a row must not leak into the next one.
func TestADecoderForgetsTheRowBefore(t *testing.T) {
	rel := table(nil, change.Column{Name: "id", Type: oidInt4, Key: true}, change.Column{Name: "v", Type: 25})
	d := NewDecoder()
	for _, c := range []struct {
		op   change.Operation
		raw  []byte
		want string
	}{
		{change.Update, row('U', 1).tuple('O', "1", "a").tuple('N', "1", toasted{}), `{"id":1,"v":"a"}|{"id":1,"v":"a"}|[]`},
		{change.Update, row('U', 1).tuple('N', "1", toasted{}), `|{"id":1}|[v]`},
		{change.Message, logical(true, 1, "p", "c"), `|{"prefix":"p","content":"c"}|[]`},
		{change.Truncate, truncate(1), `||[]`},
		{change.Delete, row('D', 1).tuple('K', "2", nil), `{"id":2}||[]`},
		{change.Insert, row('I', 1).tuple('N', "3", "b"), `|{"id":3,"v":"b"}|[]`},
	} {
		ch := change.Change{Operation: c.op, Relation: rel, Raw: c.raw}
		before, after, unchanged, err := decode(d, &ch)
		if got := fmt.Sprintf("%s|%s|%v", before, after, unchanged); err != nil || got != c.want {
			t.Errorf("%s gives %s, error %v, want %s", c.op, got, err, c.want)
		}
	}
}

func TestDecodingIntoAReusedBufferAllocatesNothing(t *testing.T) {
	rel := table(nil, change.Column{Name: "id", Type: oidInt4, Key: true}, change.Column{Name: "v", Type: 25}, change.Column{Name: "t", Type: oidTimestampTZ})
	c := change.Change{Operation: change.Update, Relation: rel, Raw: row('U', 1).tuple('O', "1", "a\n", "2026-01-02 03:04:05+00").tuple('N', "1", toasted{}, nil)}
	d := NewDecoder()
	dst := make([]byte, 0, 1000)
	n := testing.AllocsPerRun(1000, func() {
		r, err := d.Decode(&c)
		if err != nil {
			t.Fatal(err)
		}
		if dst, err = r.AppendBefore(dst[:0]); err != nil {
			t.Fatal(err)
		}
		if dst, err = r.AppendAfter(dst); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations per row", n)
	}
}
