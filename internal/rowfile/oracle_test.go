package rowfile_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/pgtest"
)

var (
	oracleSeed = flag.Uint64("oracle.seed", 0, "seed of the random rows; 0 is another one each time")
	oracleRows = flag.Int("oracle.rows", 5000, "random rows on each version")
)

// Any row, any type, any settings of role and database: the images are, byte for
// byte, what to_json gives.
func TestRandomRowsAreWhatToJSONGives(t *testing.T) {
	seed := *oracleSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	onServers(t, func(t *testing.T, srv *pgtest.Server) {
		for i, c := range []struct {
			name             string
			ofRole, ofServer map[string]string
		}{{"plain", nil, nil}, {"hostile_role", hostile, nil}, {"hostile_database", nil, hostile}} {
			t.Run(c.name, func(t *testing.T) {
				seed := seed + uint64(i)
				t.Logf("go test -run %s -oracle.seed %d", strings.ReplaceAll(t.Name(), "/", "$/^"), seed)
				w := newWorld(t, srv, c.name, "", c.ofRole, c.ofServer)
				run(t, w.app, setup)
				g := &generator{t: t, w: w, r: rand.New(rand.NewPCG(seed, 0)), reached: map[string]int{}}
				g.tables(srv.Version(), *oracleRows/3+1)
				g.compare()
			})
		}
	})
}

// column is a column of a table of the oracle.
type column struct {
	sqlType
	label string
}

// generator makes tables and rows, and keeps what is to come of them.
type generator struct {
	t       *testing.T
	w       *world
	r       *rand.Rand
	reached map[string]int // values that are not null, by type
	serial  int
	want    []expected
}

// expected is a change as the oracle has it, with the statement that made it.
type expected struct {
	table, before, after string
	op                   change.Operation
	statement            string
}

// tables deals out all types, and arrays of them, to tables and fills these with
// at least the given number of rows in all.
func (g *generator) tables(version, rows int) {
	var types []sqlType
	for _, s := range oracleTypes() {
		if s.since > version {
			continue
		}
		types = append(types, s)
		if !s.scalar {
			types = append(types, sqlType{name: s.name + "[]", random: arrayOf(s), cast: s.cast})
		}
	}
	g.r.Shuffle(len(types), func(i, j int) { types[i], types[j] = types[j], types[i] })
	const width = 12
	each := rows/(len(types)/width+1) + 1
	for chunk := range slices.Chunk(types, width) {
		g.serial++
		g.table(fmt.Sprint("t", g.serial), chunk, each)
	}
	for _, s := range types {
		if g.reached[s.name] == 0 {
			g.t.Errorf("type %s was never reached", s.name)
		}
	}
}

func (g *generator) table(name string, types []sqlType, rows int) {
	// In each table there is one column that is TOASTed.
	types = append(types[:len(types):len(types)], sqlType{name: "text", random: func(r *rand.Rand) string { return fmt.Sprintf("%x", randomBytes(r, 1200)) }})
	columns := make([]column, len(types))
	ddl := "CREATE TABLE " + name + " (id int PRIMARY KEY"
	for i, s := range types {
		columns[i] = column{s, fmt.Sprint("c", i)}
		ddl += fmt.Sprintf(", c%d %s", i, s.name)
	}
	run(g.t, g.w.app, ddl+")", fmt.Sprintf("ALTER TABLE %s ALTER c%d SET STORAGE EXTERNAL", name, len(types)-1))
	full := g.r.IntN(2) == 0
	if full {
		run(g.t, g.w.app, "ALTER TABLE "+name+" REPLICA IDENTITY FULL")
	}
	// The oracle's query. Where to_json follows a cast, text is what is expected.
	query := "SELECT to_json(x) FROM (SELECT id"
	for _, c := range columns {
		if query += ", " + c.label; c.cast {
			query += "::text" + strings.Repeat("[]", strings.Count(c.name, "[]")) + " AS " + c.label
		}
	}
	query += " FROM public." + name + ") x WHERE id "
	now := map[int]string{} // rows as they are, by id
	next := 0
	for range rows {
		var e expected
		var ids []int
		for id := range now {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		switch n := g.r.IntN(10); {
		case n < 6 || len(ids) == 0:
			next++
			values := make([]string, len(columns))
			for i, c := range columns {
				values[i] = g.value(c.sqlType)
			}
			e = expected{op: change.Insert, statement: fmt.Sprintf("INSERT INTO %s VALUES (%d, %s)", name, next, strings.Join(values, ", "))}
			run(g.t, g.w.app, e.statement)
			now[next] = run(g.t, g.w.oracle, query+fmt.Sprint("= ", next))[0]
			e.after = now[next]
		case n < 9:
			id := ids[g.r.IntN(len(ids))]
			to := id
			var set []string
			if g.r.IntN(5) == 0 {
				next++
				to = next
				set = append(set, fmt.Sprint("id = ", to))
			}
			for range 1 + g.r.IntN(3) {
				c := columns[g.r.IntN(len(columns))]
				if assignment := c.label + " = "; !slices.ContainsFunc(set, func(s string) bool { return strings.HasPrefix(s, assignment) }) {
					set = append(set, assignment+g.value(c.sqlType))
				}
			}
			e = expected{op: change.Update, statement: fmt.Sprintf("UPDATE %s SET %s WHERE id = %d", name, strings.Join(set, ", "), id)}
			run(g.t, g.w.app, e.statement)
			if full {
				e.before = now[id]
			} else if to != id {
				e.before = fmt.Sprintf(`{"id":%d}`, id)
			}
			delete(now, id)
			now[to] = run(g.t, g.w.oracle, query+fmt.Sprint("= ", to))[0]
			e.after = now[to]
		default:
			id := ids[g.r.IntN(len(ids))]
			e = expected{op: change.Delete, statement: fmt.Sprintf("DELETE FROM %s WHERE id = %d", name, id)}
			run(g.t, g.w.app, e.statement)
			e.before = fmt.Sprintf(`{"id":%d}`, id)
			if full {
				e.before = now[id]
			}
			delete(now, id)
		}
		e.table = name
		g.want = append(g.want, e)
	}
}

// value gives the SQL of a value, at times NULL.
func (g *generator) value(s sqlType) string {
	if g.r.IntN(8) == 0 {
		return "NULL"
	}
	g.reached[s.name]++
	return quote(s.text(g.r)) + "::" + s.name
}

// compare reads the stream and compares it with what is to come.
func (g *generator) compare() {
	g.t.Helper()
	changes := g.w.stream(g.t)
	alone := 0 // with values that the change itself does not hold
	for _, c := range decodeAll(g.t, changes, 1) {
		if len(c.unchanged) > 0 {
			alone++
		}
	}
	got := decodeAll(g.t, changes, 20+g.r.IntN(300))
	if len(got) != len(g.want) {
		g.t.Fatalf("%d changes, want %d", len(got), len(g.want))
	}
	unchanged, failures := 0, 0
	for i, e := range g.want {
		have := got[i]
		after := e.after
		if len(have.unchanged) > 0 {
			unchanged++
			after = without(g.t, after, have.unchanged)
		}
		if have.table != e.table || have.op != e.op || have.before != e.before || have.after != after {
			g.t.Errorf("%s %s %s\n%s\nbefore %s\nwant   %s\nafter  %s\nwant   %s", have.op, have.table, have.unchanged, e.statement, have.before, e.before, have.after, after)
			if failures++; failures == 5 {
				g.t.Fatal("and so on")
			}
		}
	}
	g.t.Logf("%d changes, %d with unchanged values that were not sent, %d with some that nothing supplied", len(got), alone, unchanged)
	if alone == unchanged {
		g.t.Error("no unchanged value was supplied by another change")
	}
}

// without gives a JSON object without some of its members, the rest as it was.
func without(t *testing.T, object string, names []string) string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(object))
	var out bytes.Buffer
	out.WriteByte('{')
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		// The value is cut out with the white space around it, which may be json's.
		from := d.InputOffset()
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
		to := d.InputOffset()
		for strings.ContainsRune(" \t\r\n", rune(object[to])) {
			to++
		}
		if slices.Contains(names, name.(string)) {
			continue
		}
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, "%q%s", name, object[from:to])
	}
	return out.String() + "}"
}
