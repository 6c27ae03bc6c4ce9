package pgoutput

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// Types for tests, with every way that types refer to each other.
const (
	oidPair   = 70100 + iota // (a int, b text)
	oidPairs                 // pair[]
	oidOuter                 // (p pair, ps pair[], j json, f bool, t text[])
	oidOuters                // outer[]
	oidWhole                 // domain over int4
	oidWholes                // domain over whole[]
	oidWholeA                // whole[]
	oidEmpty                 // ()
	oidCircle                // (c circle), which no catalog holds
	oidOdd                   // odd[], delimited by |, of a type without facts
	oidCast                  // a base type with a cast to json
	oidCasts                 // cast[]
)

func nestedTypes() []change.Type {
	return []change.Type{
		{OID: oidPair, Kind: change.KindComposite, Fields: []change.Column{{Name: "a", Type: oidInt4}, {Name: "b", Type: 25}}},
		{OID: oidPairs, Kind: change.KindArray, Base: oidPair, Delimiter: ','},
		{OID: oidOuter, Kind: change.KindComposite, Fields: []change.Column{
			{Name: "p", Type: oidPair}, {Name: "ps", Type: oidPairs}, {Name: "j", Type: oidJSON}, {Name: "f", Type: oidBool}, {Name: "t", Type: 1009}}},
		{OID: oidOuters, Kind: change.KindArray, Base: oidOuter, Delimiter: ','},
		{OID: oidWhole, Kind: change.KindDomain, Base: oidInt4},
		{OID: oidWholes, Kind: change.KindDomain, Base: oidWholeA},
		{OID: oidWholeA, Kind: change.KindArray, Base: oidWhole}, // a delimiter that was not told is a comma
		{OID: oidEmpty, Kind: change.KindComposite},
		{OID: oidCircle, Kind: change.KindComposite, Fields: []change.Column{{Name: "c", Type: oidCircle}}},
		{OID: oidOdd, Kind: change.KindArray, Base: 79999, Delimiter: '|'},
		{OID: oidCast, Kind: change.KindBase, JSONCast: true},
		{OID: oidCasts, Kind: change.KindArray, Base: oidCast, Delimiter: ','},
	}
}

// imageOf decodes text as a row with one column, c.
func imageOf(t testing.TB, d *Decoder, rel *change.Relation, text string) (string, error) {
	t.Helper()
	ch := change.Change{Operation: change.Insert, Relation: rel, Raw: row('I', 1).tuple('N', text)}
	_, after, _, err := decode(d, &ch)
	return string(after), err
}

func TestArraysAndCompositesAreWrittenByTheirTypes(t *testing.T) {
	for _, c := range []struct {
		oid        uint32
		text, want string
	}{
		{1007, `{}`, `[]`},
		{1007, `{1,NULL,-3}`, `[1,null,-3]`},
		{1007, `[0:1][-5:-4]={{1,2},{3,NULL}}`, `[[1,2],[3,null]]`},
		{1231, `{NaN,1.50}`, `["NaN",1.50]`},
		{1000, `{t,f,NULL}`, `[true,false,null]`},
		{1009, `{a,"","NULL","a,b","{}","\"\\",null}`, `["a","","NULL","a,b","{}","\"\\","null"]`},
		{1009, `{"\a"}`, `["a"]`},
		{1009, `{[1:2]=}`, `["[1:2]="]`},
		{1020, `{(1,2),(0,0);NULL}`, `["(1,2),(0,0)",null]`},
		{1185, `{"2026-01-02 03:04:05+00",infinity}`, `["2026-01-02T03:04:05+00:00","infinity"]`},
		{199, `{"{\"a\": 1.0}",NULL,"null"}`, `[{"a": 1.0},null,null]`},
		{oidInt2Vector, `1 -2 3`, `[1,-2,3]`},
		{oidOIDVector, `1 2`, `["1","2"]`},
		{oidOIDVector, ``, `[]`},
		{1006, `{"1 2","",3}`, `[[1,2],[],[3]]`},
		{oidWholes, `{1,2}`, `[1,2]`},
		{oidOdd, `{a,b|c}`, `["a,b","c"]`},
		{oidCasts, `{"\"a\"=>\"b\"",NULL}`, `["\"a\"=>\"b\"",null]`},
		{oidPair, `(1,x)`, `{"a":1,"b":"x"}`},
		{oidPair, `(,)`, `{"a":null,"b":null}`},
		{oidPair, `(,"")`, `{"a":null,"b":""}`},
		{oidPair, `(,NULL)`, `{"a":null,"b":"NULL"}`},
		{oidPair, `(1,"""\\ (,)")`, `{"a":1,"b":"\"\\ (,)"}`},
		{oidPairs, `{"(1,\"a\"\"b\")",NULL}`, `[{"a":1,"b":"a\"b"},null]`},
		{oidOuter, `("(1,""a b"")","{""(2,\\""c d\\"")""}","{""k"": 1}",t,"{""x,y"",z}")`,
			`{"p":{"a":1,"b":"a b"},"ps":[{"a":2,"b":"c d"}],"j":{"k": 1},"f":true,"t":["x,y","z"]}`},
		{oidEmpty, `()`, `{}`},

		// What does not fit is its text. Of a composite nothing is guessed, and
		// what surrounds it is as it should be.
		{1007, ``, `""`},
		{1007, `{`, `"{"`},
		{1007, `{1`, `"{1"`},
		{1007, `{1,`, `"{1,"`},
		{1007, `{1,}`, `"{1,}"`},
		{1007, `{,1}`, `"{,1}"`},
		{1007, `{1}}`, `"{1}}"`},
		{1007, `{1} `, `"{1} "`},
		{1007, `{1;2}`, `["1;2"]`},
		{1007, `{{}}`, `"{{}}"`},
		{1007, `[1:2={1}`, `[1]`},
		{1007, `[x]={1}`, `"[x]={1}"`},
		{1007, `[1:2]`, `"[1:2]"`},
		{1007, `{{{{{{{1}}}}}}}`, `"{{{{{{{1}}}}}}}"`}, // seven dimensions
		{1009, `{"a}`, `"{\"a}"`},
		{1009, `{"a\`, `"{\"a\\"`},
		{1009, `{"a"b}`, `"{\"a\"b}"`},
		{1009, `{a"b}`, `"{a\"b}"`},
		{1000, `{t,x}`, `"{t,x}"`},
		{oidInt2Vector, `1  2`, `"1  2"`},
		{oidInt2Vector, `1 `, `"1 "`},
		{oidInt2Vector, `x`, `"x"`},
		{oidPair, ``, `""`},
		{oidPair, `(`, `"("`},
		{oidPair, `(1`, `"(1"`},
		{oidPair, `(1,`, `"(1,"`},
		{oidPair, `(1,x`, `"(1,x"`},
		{oidPair, `(1)`, `"(1)"`},
		{oidPair, `(1,x,)`, `"(1,x,)"`},
		{oidPair, `(1,x) `, `"(1,x) "`},
		{oidPair, `(1,"x)`, `"(1,\"x)"`},
		{oidPair, `(1,"\x")`, `"(1,\"\\x\")"`},
		{oidPair, `(1,x"y)`, `"(1,x\"y)"`},
		{oidPair, `[1,x)`, `"[1,x)"`},
		{oidPair, `(x,y)`, `{"a":"x","b":"y"}`}, // a number is anything: NaN
		{oidEmpty, `(1)`, `"(1)"`},
		{oidPairs, `{"(1,a)","(1,a,2)","(2,b)"}`, `[{"a":1,"b":"a"},"(1,a,2)",{"a":2,"b":"b"}]`},
		{oidOuter, `("(1,2,3)","{""(1)""}",null,f,"{a}")`, `{"p":"(1,2,3)","ps":["(1)"],"j":null,"f":false,"t":["a"]}`},
		{oidOuter, `(,,no json,f,)`, `"(,,no json,f,)"`},
		{oidOuter, `(,,1,maybe,)`, `"(,,1,maybe,)"`},
		{oidOuter, `(,,1,t,no array)`, `"(,,1,t,no array)"`},
		{oidOuters, `{"(,,1,t,no array)","(,,1,t,{})"}`, `["(,,1,t,no array)",{"p":null,"ps":null,"j":1,"f":true,"t":[]}]`},
		{oidCircle, `(1)`, `{"c":"1"}`},
		{79999, `(1,2)`, `"(1,2)"`}, // no facts at all
	} {
		rel := table(nestedTypes(), change.Column{Name: "c", Type: c.oid})
		after, err := imageOf(t, NewDecoder(), rel, c.text)
		if want := `{"c":` + c.want + `}`; err != nil || after != want {
			t.Errorf("type %d: %q gives\n%s, error %v, want\n%s", c.oid, c.text, after, err, want)
		}
		if !json.Valid([]byte(after)) {
			t.Errorf("type %d: %q gives no valid JSON: %s", c.oid, c.text, after)
		}
	}
}

// A SQL_ASCII database holds any bytes, and they are sent as they are.
func TestTextThatIsNotUTF8IsKeptAsBytes(t *testing.T) {
	for _, c := range []struct {
		oid        uint32
		text, want string
	}{
		{25, "caf\xe9", `{"tidemark_hex":"636166e9"}`},
		{25, "\xed\xa0\x80", `{"tidemark_hex":"eda080"}`}, // a surrogate
		{25, `{"tidemark_hex":"ff"}`, `"{\"tidemark_hex\":\"ff\"}"`},
		{1009, "{a,\xe9,\"\xe9 \"}", `["a",{"tidemark_hex":"e9"},{"tidemark_hex":"e920"}]`},
		{oidPair, "(1,\xe9)", `{"a":1,"b":{"tidemark_hex":"e9"}}`},
		{oidPair, "(1,\xe9,2)", `{"tidemark_hex":"28312ce92c3229"}`},
		{oidNumeric, "\xe9", `{"tidemark_hex":"e9"}`},
		{oidTimestamp, "\xe9 \xe9", `{"tidemark_hex":"e920e9"}`},
		{oidJSON, "[\"\xe9\"]", `{"tidemark_hex":"5b22e9225d"}`},
		// A json value that would read like it is written in the same way.
		{oidJSON, `{"tidemark_hex":"ff"}`, `{"tidemark_hex":"7b22746964656d61726b5f686578223a226666227d"}`},
	} {
		rel := table(nestedTypes(), change.Column{Name: "c", Type: c.oid})
		after, err := imageOf(t, NewDecoder(), rel, c.text)
		if want := `{"c":` + c.want + `}`; err != nil || after != want {
			t.Errorf("type %d: %q gives %s, error %v, want %s", c.oid, c.text, after, err, want)
		}
	}
}

func TestNestedValuesAllocateNothingOnceBuffersAreThere(t *testing.T) {
	rel := table(nestedTypes(), change.Column{Name: "c", Type: oidOuters})
	outer := `("(1,""a b"")","{""(2,\\""c d\\"")""}","{""k"": 1}",t,"{""x,y"",z}")`
	text := `{"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(outer) + `"}`
	c := change.Change{Operation: change.Insert, Relation: rel, Raw: row('I', 1).tuple('N', text)}
	d := NewDecoder()
	dst := make([]byte, 0, 1000)
	n := testing.AllocsPerRun(1000, func() {
		r, err := d.Decode(&c)
		if err != nil {
			t.Fatal(err)
		}
		if dst, err = r.AppendAfter(dst[:0]); err != nil {
			t.Fatal(err)
		}
	})
	want := `{"c":[{"p":{"a":1,"b":"a b"},"ps":[{"a":2,"b":"c d"}],"j":{"k": 1},"f":true,"t":["x,y","z"]}]}`
	if string(dst) != want {
		t.Errorf("got %s", dst)
	}
	if n != 0 {
		t.Errorf("%v allocations per row", n)
	}
}

// Whatever the text, the image is valid JSON, and says as much as the text.
func FuzzNested(f *testing.F) {
	oids := []uint32{oidPairs, oidOuter, oidOuters, oidWholes, 1009, 1020, 1006, 199, oidOdd}
	for i, text := range []string{`{"(1,\"a\"\"b\")",NULL}`, `("(1,""a b"")","{""(2,\\""c d\\"")""}","{""k"": 1}",t,"{""x,y"",z}")`,
		`{"(,,1,t,{})"}`, `[0:1]={{1},{2}}`, `{a,"","NULL","\"\\"}`, `{(1,2),(0,0);NULL}`, `{"1 2",3}`, `{"{}",1}`, `{a|b}`} {
		f.Add(byte(i), text)
	}
	relations := make([]*change.Relation, len(oids))
	for i, oid := range oids {
		relations[i] = table(nestedTypes(), change.Column{Name: "c", Type: oid})
	}
	d := NewDecoder()
	f.Fuzz(func(t *testing.T, which byte, text string) {
		rel := relations[int(which)%len(relations)]
		json1, err := imageOf(t, d, rel, text)
		if err != nil {
			t.Fatal(err)
		}
		// In an array of json nothing is looked at: its elements are sure to be json.
		if rel.Columns[0].Type != 199 && !json.Valid([]byte(json1)) {
			t.Fatalf("image is no JSON: %q", json1)
		}
		if len(d.writer.scratch) != 0 || d.writer.composites != 0 {
			t.Fatalf("%d bytes of scratch are left, in %d composites", len(d.writer.scratch), d.writer.composites)
		}
		if len(json1) > 6*len(text)+12*len(text)+200 {
			t.Fatalf("image of %d bytes from a text of %d", len(json1), len(text))
		}
		again, err := imageOf(t, NewDecoder(), rel, text)
		if err != nil || !bytes.Equal([]byte(again), []byte(json1)) {
			t.Fatalf("a new decoder gives %q", again)
		}
	})
}
