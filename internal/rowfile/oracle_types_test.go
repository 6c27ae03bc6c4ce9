package rowfile_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// sqlType is a type that the oracle's tables have columns of.
type sqlType struct {
	name string // as SQL spells it
	// edges are texts of values that are likely to go wrong, and random makes any
	// other; nil is one of the edges each time.
	edges  []string
	random func(*rand.Rand) string
	// delimiter of its arrays; empty is a comma.
	delimiter string
	// since is the first major version that takes all this.
	since int
	// scalar says that there is no array of it.
	scalar bool
	// cast says that to_json follows a user-defined cast, and Tidemark does not.
	cast bool
}

// text gives the text of a value. Half of them are edges.
func (s sqlType) text(r *rand.Rand) string {
	if s.random == nil || len(s.edges) > 0 && r.IntN(2) == 0 {
		return s.edges[r.IntN(len(s.edges))]
	}
	return s.random(r)
}

// setup is what the types below need.
const setup = `
	CREATE EXTENSION hstore; CREATE EXTENSION citext; CREATE EXTENSION ltree;
	CREATE EXTENSION isn; CREATE EXTENSION cube; CREATE EXTENSION seg;
	CREATE TYPE mood AS ENUM ('sad', 'ok', 'NULL', 'a "q" \', '', 'x,y', '{z}', 'ünï');
	CREATE TYPE unlabelled AS ENUM ();
	CREATE DOMAIN whole AS int;
	CREATE DOMAIN wholer AS whole;
	CREATE DOMAIN flag AS bool;
	CREATE DOMAIN document AS jsonb;
	CREATE DOMAIN wholes AS whole[];
	CREATE DOMAIN moods AS mood[];
	CREATE TYPE pair AS (a int, b text);
	CREATE TYPE nest AS (p pair, "p.s" pair[], m mood, j json, ts timestamptz, n numeric, f flag, w wholes, d document);
	CREATE TYPE "Odd ""Name" AS ("x""y" text, "ü\" bytea, gone int, " " box[]);
	ALTER TYPE "Odd ""Name" DROP ATTRIBUTE gone;
	CREATE TYPE nothing AS ();
	CREATE DOMAIN paired AS pair CHECK ((VALUE).a IS NULL OR (VALUE).a > -2147483648);
	CREATE TYPE floats AS RANGE (subtype = float8, subtype_diff = float8mi);
	CREATE TYPE texts AS RANGE (subtype = text, collation = "C");
	CREATE TABLE "Row ""Type" (id int, note text, gone int, at date);
	ALTER TABLE "Row ""Type" DROP COLUMN gone;
`

// oracleTypes are all types but arrays, which the test adds.
func oracleTypes() []sqlType {
	one := func(name string, edges ...string) sqlType { return sqlType{name: name, edges: edges} }
	with := func(name string, random func(*rand.Rand) string, edges ...string) sqlType {
		return sqlType{name: name, random: random, edges: edges}
	}
	pair := compositeOf(integer(32), words)
	documents := []string{`{"a":1,"a":2, "b" : [1.0, 1e5, -0, 1E-400] }`, ` "s" `, "null", "[]", "{}", "true", "\t[1,\n2]\r",
		strings.Repeat("9", 400), `"\u00e9\ud834\udd1e\n\"\\"`, `{"":{"":[[[[null]]]]}}`, `"é𝄞 '"`, `{"a":"{b,\"c\"}"}`}
	all := []sqlType{
		one("boolean", "t", "f"),
		with(`smallint`, integer(16), "0", "-32768", "32767"),
		with(`integer`, integer(32), "0", "-2147483648", "2147483647"),
		with(`bigint`, integer(64), "0", "-9223372036854775808", "9223372036854775807"),
		with(`real`, func(r *rand.Rand) string { return float(r, 32) }, "0", "-0", "NaN", "Infinity", "-Infinity", "3.4028235e38", "1e-45", "1.1754944e-38", "16777216", "0.3", "1e6", "1e-5"),
		with(`double precision`, func(r *rand.Rand) string { return float(r, 64) }, "0", "-0", "NaN", "Infinity", "-Infinity", "1.7976931348623157e308", "5e-324", "2.2250738585072014e-308", "0.1", "1e15", "1e16", "123456789012345680", "1e-5"),
		with(`numeric`, numeric, "NaN", "Infinity", "-Infinity", "0", "0.000", "-0.0", "1e-300", "1e300", strings.Repeat("9", 1000), "-"+strings.Repeat("7", 500)+"."+strings.Repeat("3", 500)),
		with(`numeric(10,3)`, func(r *rand.Rand) string { return fmt.Sprintf("%.3f", r.NormFloat64()*1000) }, "0", "NaN", "9999999.999", "-0.001"),
		one(`numeric(5,-2)`, "0", "12345", "-9999940", "50"),
		with(`money`, func(r *rand.Rand) string { return fmt.Sprintf("%.2f", r.NormFloat64()*1e6) }, "0", "-92233720368547758.08", "92233720368547758.07", "-0.01", "1234.5"),
		with(`text`, words, hostileTexts...),
		with(`varchar(200)`, words, hostileTexts...),
		one(`char(10)`, "", "abc", "  a  ", "0123456789", "é", "NULL", `"`, `\`, "a,b"),
		one(`"char"`, "", "a", `\`, `"`, " ", ",", "{"),
		one(`name`, "", "a", strings.Repeat("x", 63), "Odd \"name\"", "é", "NULL"),
		with(`bytea`, func(r *rand.Rand) string { return fmt.Sprintf(`\x%x`, randomBytes(r, r.IntN(100))) }, `\x`, fmt.Sprintf(`\x%x`, everyByte()), `\x00`),
		one(`date`, "infinity", "-infinity", "4713-11-24 BC", "0001-12-31 BC", "0001-01-01", "9999-12-31", "10000-01-01", "5874897-12-31", "1970-01-01", "2024-02-29"),
		with(`time`, clock, "00:00", "24:00:00", "23:59:59.999999", "23:59:60", "12:00:00.1"),
		one(`time(2)`, "23:59:59.999", "00:00:00.004"),
		one(`timetz`, "24:00:00-15:59", "00:00:00+15:59:59", "12:34:56.789+05:30", "00:00Z"),
		with(`timestamp`, moment, "infinity", "-infinity", "4713-11-24 00:00:00 BC", "0044-03-15 12:00:00.5 BC", "0001-01-01 00:00", "294276-12-31 23:59:59.999999", "1999-12-31 24:00:00", "2026-01-02 03:04:05.000001", "10000-01-01 00:00"),
		with(`timestamptz`, moment, "infinity", "-infinity", "4713-11-24 00:00:00+00 BC", "0044-03-15 12:00:00.5+00 BC", "294276-12-31 23:59:59.999999+00", "2026-01-02 03:04:05+05:45", "1900-01-01 00:00:00+00:19:32", "10000-01-01 00:00+00"),
		one(`timestamptz(0)`, "2026-01-02 03:04:05.5+00", "infinity"),
		with(`interval`, func(r *rand.Rand) string {
			return fmt.Sprintf("%d mons %d days %d microseconds", r.IntN(400)-200, r.IntN(400)-200, r.Int64N(2e12)-1e12)
		}, "0", "178000000 years", "-178000000 years", "1 mon -1 day +00:00:01", "-00:00:00.000001", "P1Y2M3DT4H5M6.789S", "2562047788:00:54.775807", "-1 years -2 mons"),
		{name: `interval second(3)`, edges: []string{"infinity", "-infinity", "1.23456"}, since: 17},
		one(`bit(5)`, "00000", "10101"),
		with(`bit varying`, func(r *rand.Rand) string { return strconv.FormatUint(r.Uint64(), 2) }, "", "1", strings.Repeat("10", 100)),
		with(`uuid`, func(r *rand.Rand) string { return fmt.Sprintf("%x", randomBytes(r, 16)) }, strings.Repeat("0", 32), strings.Repeat("f", 32)),
		one(`inet`, "0.0.0.0/0", "::", "::ffff:1.2.3.4", "fe80::1/64", "255.255.255.255", "10.1.2.3/8"),
		one(`cidr`, "10.0.0.0/8", "::/0", "192.168.1.1/32", "2001:db8::/32"),
		one(`macaddr`, "08:00:2b:01:02:03"),
		one(`macaddr8`, "08:00:2b:01:02:03:04:05"),
		one(`point`, "(1,2)", "(NaN,Infinity)", "(-0,1e-300)"),
		one(`line`, "{1,-1,0}", "{0.1,2,3}"),
		one(`lseg`, "[(0,0),(1,1)]"),
		{name: `box`, edges: []string{"(1,1),(0,0)", "(Infinity,1e300),(-0,NaN)"}, delimiter: ";"},
		one(`path`, "[(0,0),(1,1)]", "((0,0),(1,1),(2,0))"),
		one(`polygon`, "((0,0),(1,1),(2,0))"),
		one(`circle`, "<(0,0),1>", "<(1.5,-2),0>"),
		one(`json`, append([]string{`"\u0000"`, `"\ud800"`}, documents...)...),
		with(`jsonb`, object, documents...),
		one(`jsonpath`, "$", `$."a"[*] ? (@.b > 1 && @.c like_regex "^x\\y")`),
		one(`xml`, `<a b="c">é</a>`, "text &amp; more", `<?xml version="1.0" standalone="yes"?><a/>`, `<?xml version="1.0" encoding="UTF-8"?><a/>`, "<!-- \"c\" -->"),
		one(`tsvector`, "", `'a b' 'c''d':1,2A 'e\\f':3B`, "x:1 y:2"),
		one(`tsquery`, "", "a & !b | c:*", `'a b' <-> 'c''d':AB`),
		one(`oid`, "0", "4294967295"),
		one(`regclass`, "pg_class", "0", "4294967295", `public."Row ""Type"`),
		one(`regtype`, "int4", "integer[]", "public.pair", "0", `public."Odd ""Name"[]`),
		one(`regproc`, "now", "0", "4294967295"),
		one(`regprocedure`, "abs(int4)", "0", "pg_catalog.now()"),
		one(`regoper`, "||/", "0"),
		one(`regoperator`, "+(integer,integer)", "!!(none,tsquery)", "0"),
		one(`regnamespace`, "public", "0", "pg_catalog"),
		one(`regrole`, "postgres", "0"),
		one(`regconfig`, "english", "0"),
		one(`regdictionary`, "simple", "0"),
		one(`regcollation`, `"C"`, "0"),
		one(`xid`, "0", "4294967295"),
		one(`xid8`, "18446744073709551615"),
		one(`cid`, "1"),
		one(`tid`, "(0,1)", "(4294967295,65535)"),
		one(`pg_lsn`, "0/0", "FFFFFFFF/FFFFFFFF"),
		one(`txid_snapshot`, "10:20:10,14,15", "1:1:"),
		one(`pg_snapshot`, "10:20:10,14,15"),
		one(`aclitem`, "postgres=r/postgres", "=arwd*/postgres"),
		one(`refcursor`, "", "c 1"),
		one(`int2vector`, "", "1 -2 3", "5"),
		one(`oidvector`, "", "1 2 3", "4294967295"),
		one(`int4range`, "[1,5)", "empty", "(,)", "[,10]"),
		one(`int8range`, "[1,5)", "empty", "[-9223372036854775808,)"),
		one(`numrange`, "[1.5,2.50)", "(,NaN]", "empty", "[0.0,Infinity)"),
		one(`tsrange`, `["2026-01-01 00:00:00",infinity]`, `("0044-03-15 12:00:00 BC",)`),
		one(`tstzrange`, `["2026-01-01 00:00:00+05:30","2026-01-02 00:00:00.1+00")`, "empty"),
		one(`daterange`, "[2026-01-01,)", "[-infinity,infinity]"),
		one(`int4multirange`, "{}", "{[1,2),[5,)}"),
		one(`int8multirange`, "{(,)}"),
		one(`nummultirange`, "{[1.5,2.50),(3,4]}"),
		one(`tsmultirange`, `{["2026-01-01 00:00:00",)}`),
		one(`tstzmultirange`, `{["2026-01-01 00:00:00+00",infinity]}`),
		one(`datemultirange`, "{[2026-01-01,2026-02-01),(2027-01-01,)}"),
		one(`floats`, "[1e-5,NaN]", "[-0,0.1)", "empty"),
		one(`floats_multirange`, "{[1,2),(3,Infinity]}"),
		one(`texts`, `["a,b","c)"]`, `["",)`, `["\"","\\\\")`, "empty"),
		one(`texts_multirange`, `{["a b","c"),["x","y}"]}`),
		one(`mood`, "sad", "ok", "NULL", `a "q" \`, "", "x,y", "{z}", "ünï"),
		with(`whole`, integer(32), "0"),
		with(`wholer`, integer(32), "0"),
		one(`flag`, "t", "f"),
		one(`document`, documents...),
		{name: `wholes`, random: arrayOf(sqlType{random: integer(32)}), edges: []string{"{}", "[0:1]={1,NULL}"}},
		one(`moods`, "{}", `{sad,"NULL",NULL,"a \"q\" \\"}`, `{{"x,y"},{"{z}"}}`),
		with(`pair`, pair, "(,)", `(1,"")`, `(-1,"""\\ (,)")`),
		with(`paired`, pair, "(,)", `(1,x)`),
		with(`nest`, compositeOf(pair, arrayOf(sqlType{random: pair}), one("", "sad", "NULL", "x,y").text, one("", documents...).text, one("", "infinity", "2026-01-02 03:04:05.6+00").text,
			numeric, one("", "t", "f").text, arrayOf(sqlType{random: integer(32)}), one("", documents...).text), "(,,,,,,,,)"),
		with(`"Odd ""Name"`, compositeOf(words, one("", `\x`, `\x00ff22`).text, arrayOf(sqlType{edges: []string{"(1,1),(0,0)"}, delimiter: ";"})), "(,,)"),
		one(`nothing`, "()"),
		with(`"Row ""Type"`, compositeOf(integer(32), words, one("", "infinity", "2026-01-02").text), "(,,)"),
		with(`citext`, words, hostileTexts...),
		one(`ltree`, "", "Top.Science", "a.b_c.D"),
		one(`lquery`, "*.a{1,2}", "*"),
		one(`ltxtquery`, "a & b*"),
		one(`isbn`, "978-0-393-04002-9"),
		one(`ean13`, "978-0-393-04002-9"),
		one(`issn`, "1436-4522"),
		one(`cube`, "(1,2),(3,4)", "(0.1)", "(-0,NaN)"),
		one(`seg`, "1.0 .. 2.00", "~5", "< 3"),
		{name: `hstore`, edges: []string{"", `a=>1, "b c"=>NULL, ""=>"\"q\\"`, `"NULL"=>"t"`}, cast: true},
	}
	return all
}

var hostileTexts = []string{"", " ", "NULL", "null", `"`, `\`, `'`, "{}", "{a,b}", "(1,2)", "[1:2]={}", "a\tb\nc\rd\be\f\v", "\x01\x1f\x7f", "é", "𝄞\u2028\ufeff", "</script>", `\\"\"`, "ends with space ", "a;b,c", `{"json": true}`, "\\u0041", "infinity", "NaN"}

// words makes texts of hostile letters, and now and then a long one that does
// not compress, so that it is TOASTed.
func words(r *rand.Rand) string {
	letters := []rune("abc ABC\"\\{}(),;:'\n\t\x01éß𝄞NUL0")
	n := r.IntN(20)
	if r.IntN(15) == 0 {
		n = 60
		var b strings.Builder
		fmt.Fprintf(&b, "%x", randomBytes(r, n))
		return b.String()
	}
	out := make([]rune, n)
	for i := range out {
		out[i] = letters[r.IntN(len(letters))]
	}
	return string(out)
}

// object makes a JSON object with a number and a hostile text.
func object(r *rand.Rand) string {
	text, err := json.Marshal(words(r))
	if err != nil {
		return "null"
	}
	return `{"n":` + numeric(r) + `,"s":` + string(text) + `}`
}

func integer(bits int) func(*rand.Rand) string {
	return func(r *rand.Rand) string {
		return strconv.FormatInt(int64(r.Uint64())>>(64-bits)>>r.IntN(bits-1), 10)
	}
}

func float(r *rand.Rand, bits int) string {
	f := math.Float64frombits(r.Uint64())
	if bits == 32 {
		f = float64(math.Float32frombits(r.Uint32()))
	}
	if math.IsNaN(f) || bits == 32 && math.Abs(f) < 1e-37 {
		f = r.NormFloat64()
	}
	return strconv.FormatFloat(f, 'g', -1, bits)
}

func numeric(r *rand.Rand) string {
	digits := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte('0' + r.IntN(10))
		}
		return string(b)
	}
	s := "1" + digits(r.IntN(30))
	if r.IntN(2) == 0 {
		s = "-" + s
	}
	if n := r.IntN(20); n > 0 {
		s += "." + digits(n)
	}
	return s
}

func clock(r *rand.Rand) string {
	return fmt.Sprintf("%02d:%02d:%02d.%06d", r.IntN(24), r.IntN(60), r.IntN(60), r.IntN(1e6))
}

func moment(r *rand.Rand) string {
	return fmt.Sprintf("%04d-%02d-%02d %s+00", 1+r.IntN(9999), 1+r.IntN(12), 1+r.IntN(28), clock(r))
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func everyByte() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// arrayOf makes texts of arrays: of up to three dimensions, at times with lower
// bounds, every element quoted.
func arrayOf(element sqlType) func(*rand.Rand) string {
	delimiter := element.delimiter
	if delimiter == "" {
		delimiter = ","
	}
	return func(r *rand.Rand) string {
		var sizes []int
		var bounds strings.Builder
		for range []int{0, 1, 1, 1, 2, 3}[r.IntN(6)] {
			n, low := 1+r.IntN(3), r.IntN(7)-3
			sizes = append(sizes, n)
			fmt.Fprintf(&bounds, "[%d:%d]", low, low+n-1)
		}
		var b strings.Builder
		if r.IntN(3) == 0 && len(sizes) > 0 {
			b.WriteString(bounds.String() + "=")
		}
		var dimension func(sizes []int)
		dimension = func(sizes []int) {
			switch {
			case len(sizes) > 0:
				b.WriteByte('{')
				for i := range sizes[0] {
					if i > 0 {
						b.WriteString(delimiter)
					}
					dimension(sizes[1:])
				}
				b.WriteByte('}')
			case r.IntN(6) == 0:
				b.WriteString("NULL")
			default:
				b.WriteString(`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(element.text(r)) + `"`)
			}
		}
		if len(sizes) == 0 {
			return "{}"
		}
		dimension(sizes)
		return b.String()
	}
}

// compositeOf makes texts of row values, every field quoted or NULL.
func compositeOf(fields ...func(*rand.Rand) string) func(*rand.Rand) string {
	return func(r *rand.Rand) string {
		parts := make([]string, len(fields))
		for i, f := range fields {
			if r.IntN(5) > 0 {
				parts[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `""`).Replace(f(r)) + `"`
			}
		}
		return "(" + strings.Join(parts, ",") + ")"
	}
}
