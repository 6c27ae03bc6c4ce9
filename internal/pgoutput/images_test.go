package pgoutput

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

var keyed = []change.Column{{Name: "id", Type: oidInt4, Key: true}, {Name: "v", Type: 25}, {Name: "w", Type: 25}}

// follow decodes the changes as those of one segment, in batches of the given
// size, and gives for each its after image and its unchanged columns.
func follow(t *testing.T, size int, changes ...change.Change) []string {
	t.Helper()
	d := NewDecoder()
	var out []string
	for len(changes) > 0 {
		n := min(size, len(changes))
		batch := changes[:n]
		changes = changes[n:]
		d.Follow(batch)
		for i := range batch {
			_, after, unchanged, err := decode(d, &batch[i])
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, strings.TrimSpace(string(after)+" "+strings.Join(unchanged, ",")))
		}
	}
	return out
}

func TestUnchangedValuesAreTakenFromImagesOfTheirKey(t *testing.T) {
	rel := table(nil, keyed...)
	again, altered := *rel, *rel
	altered.Columns = append(keyed[:3:3], change.Column{Name: "x", Type: 25})
	full, byIndex, nothing := *rel, *rel, *rel
	full.Identity, byIndex.Identity, nothing.Identity = 'f', 'i', 'n'
	other := table(nil, keyed...)
	other.OID = 2
	u := toasted{}
	of := func(rel *change.Relation, op change.Operation, raw builder) change.Change {
		return change.Change{Operation: op, Relation: rel, Raw: raw}
	}
	insert := func(rel *change.Relation, values ...any) change.Change {
		return of(rel, change.Insert, row('I', rel.OID).tuple('N', values...))
	}
	update := func(rel *change.Relation, values ...any) change.Change {
		return of(rel, change.Update, row('U', rel.OID).tuple('N', values...))
	}
	move := func(rel *change.Relation, from any, values ...any) change.Change {
		return of(rel, change.Update, row('U', rel.OID).tuple('K', from, nil, nil).tuple('N', values...))
	}
	remove := func(rel *change.Relation, key any) change.Change {
		return of(rel, change.Delete, row('D', rel.OID).tuple('K', key, nil, nil))
	}
	for _, c := range []struct {
		name    string
		changes []change.Change
		want    string // of the last change
	}{
		{"from an insert", []change.Change{insert(rel, "1", "a", "b"), update(rel, "1", u, "c")}, `{"id":1,"v":"a","w":"c"}`},
		{"from an update", []change.Change{insert(rel, "2", "", ""), update(rel, "1", "a", "b"), update(rel, "1", u, "c")}, `{"id":1,"v":"a","w":"c"}`},
		{"several columns", []change.Change{insert(rel, "1", "a", "b"), update(rel, "1", u, u)}, `{"id":1,"v":"a","w":"b"}`},
		{"through several updates", []change.Change{insert(rel, "1", "a", "b"), update(rel, "1", u, "c"), update(rel, "1", "d", u), update(rel, "1", u, u)}, `{"id":1,"v":"d","w":"c"}`},
		{"the latest one", []change.Change{insert(rel, "1", "a", "b"), update(rel, "1", "c", "d"), update(rel, "1", u, "e")}, `{"id":1,"v":"c","w":"e"}`},
		{"one column known, one not", []change.Change{insert(rel, "9", "", ""), update(rel, "1", u, "b"), update(rel, "1", u, u)}, `{"id":1,"w":"b"} v`},
		{"another key", []change.Change{insert(rel, "1", "a", "b"), update(rel, "2", u, "c")}, `{"id":2,"w":"c"} v`},
		{"another table", []change.Change{insert(other, "1", "a", "b"), insert(rel, "9", "", ""), update(rel, "1", u, "c")}, `{"id":1,"w":"c"} v`},
		{"null then", []change.Change{insert(rel, "1", nil, "b"), update(rel, "1", u, "c")}, `{"id":1,"w":"c"} v`},
		{"the key is updated with it", []change.Change{insert(rel, "1", "a", "b"), move(rel, "1", "2", u, "c")}, `{"id":2,"v":"a","w":"c"}`},
		{"after the key was updated", []change.Change{insert(rel, "1", "a", "b"), move(rel, "1", "2", u, "c"), update(rel, "2", u, u)}, `{"id":2,"v":"a","w":"c"}`},
		{"of the old key no more", []change.Change{insert(rel, "1", "a", "b"), move(rel, "1", "2", u, "c"), update(rel, "1", u, "d")}, `{"id":1,"w":"d"} v`},
		{"keys in a circle", []change.Change{insert(rel, "1", "a", "x"), insert(rel, "2", "b", "y"), move(rel, "1", "3", u, u), move(rel, "2", "1", u, u), move(rel, "3", "2", u, u),
			update(rel, "1", u, u)}, `{"id":1,"v":"b","w":"y"}`},
		{"deleted", []change.Change{insert(rel, "1", "a", "b"), remove(rel, "1"), update(rel, "1", u, "c")}, `{"id":1,"w":"c"} v`},
		{"another was deleted", []change.Change{insert(rel, "1", "a", "b"), remove(rel, "2"), update(rel, "1", u, "c")}, `{"id":1,"v":"a","w":"c"}`},
		{"inserted again", []change.Change{insert(rel, "1", "a", "b"), remove(rel, "1"), insert(rel, "1", "c", "d"), update(rel, "1", u, "e")}, `{"id":1,"v":"c","w":"e"}`},
		{"truncated", []change.Change{insert(rel, "1", "a", "b"), of(rel, change.Truncate, truncate(1)), update(rel, "1", u, "c")}, `{"id":1,"w":"c"} v`},
		{"another was truncated", []change.Change{insert(rel, "1", "a", "b"), of(other, change.Truncate, truncate(2)), update(rel, "1", u, "c")}, `{"id":1,"v":"a","w":"c"}`},
		// ALTER TABLE ... TYPE text USING upper(v) rewrites rows and changes no column.
		{"announced again", []change.Change{insert(rel, "1", "a", "b"), insert(&again, "2", "a", "b"), update(&again, "1", u, "c")}, `{"id":1,"w":"c"} v`},
		{"announced again and back", []change.Change{insert(rel, "1", "a", "b"), insert(&again, "2", "a", "b"), insert(rel, "3", "", ""), update(rel, "1", u, "c")}, `{"id":1,"w":"c"} v`},
		{"altered", []change.Change{insert(rel, "1", "a", "b"), update(&altered, "1", u, "c", "x")}, `{"id":1,"w":"c","x":"x"} v`},
		// Rows of a publication without inserts may be others than they were.
		{"no insert was seen", []change.Change{update(rel, "1", "a", "b"), update(rel, "1", u, "c")}, `{"id":1,"w":"c"} v`},
		{"an insert is seen later", []change.Change{update(rel, "1", "a", "b"), insert(rel, "2", "", ""), update(rel, "1", u, "c")}, `{"id":1,"v":"a","w":"c"}`},
		// A row filter makes an insert of an update that moves a row into it.
		{"an insert without the value", []change.Change{insert(rel, "1", "a", "b"), insert(rel, "1", u, "c")}, `{"id":1,"w":"c"} v`},
		{"after an insert without the value", []change.Change{insert(rel, "1", "a", "b"), insert(rel, "1", u, "c"), update(rel, "1", u, "d")}, `{"id":1,"w":"d"} v`},
		{"replica identity full", []change.Change{insert(&full, "1", "a", "b"), of(&full, change.Update, row('U', 1).tuple('O', "1", "x", "y").tuple('N', "1", u, u))}, `{"id":1,"v":"x","w":"y"}`},
		{"replica identity by index", []change.Change{insert(&byIndex, "1", "a", "b"), update(&byIndex, "1", u, "c")}, `{"id":1,"v":"a","w":"c"}`},
		{"no replica identity", []change.Change{insert(&nothing, "1", "a", "b"), update(&nothing, "1", u, "c")}, `{"id":1,"w":"c"} v`},
		{"the key is not known", []change.Change{insert(rel, "1", "a", "b"), update(rel, u, "c", "d"), update(rel, "1", u, "e")}, `{"id":1,"w":"e"} v`},
		{"old key with nulls in it", []change.Change{insert(rel, "1", "a", "b"), move(rel, nil, "2", "c", "d"), update(rel, "1", u, "e")}, `{"id":1,"w":"e"} v`},
		{"a message between", []change.Change{insert(rel, "1", "a", "b"), {Operation: change.Message, Raw: logical(true, 1, "p", "c")}, update(rel, "1", u, "c")}, `{"id":1,"v":"a","w":"c"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, size := range []int{1, 2, 100} {
				got := follow(t, size, c.changes...)
				if last := got[len(got)-1]; last != c.want {
					t.Errorf("in batches of %d: %s, want %s", size, last, c.want)
				}
			}
		})
	}
}

func TestWithoutFollowNothingIsRemembered(t *testing.T) {
	rel := table(nil, keyed...)
	changes := []change.Change{
		{Operation: change.Insert, Relation: rel, Raw: row('I', 1).tuple('N', "1", "a", "b")},
		{Operation: change.Update, Relation: rel, Raw: row('U', 1).tuple('N', "1", toasted{}, "c")},
	}
	d := NewDecoder()
	for i := range changes {
		if _, _, unchanged, err := decode(d, &changes[i]); err != nil || len(unchanged) != i {
			t.Errorf("change %d: unchanged %v, error %v", i, unchanged, err)
		}
	}
}

func TestImagesAreBounded(t *testing.T) {
	rel := table(nil, keyed...)
	var changes []change.Change
	for i := range 100 {
		changes = append(changes, change.Change{Operation: change.Insert, Relation: rel, Raw: row('I', 1).tuple('N', fmt.Sprint(i), "a", "b")})
	}
	changes = append(changes, change.Change{Operation: change.Update, Relation: rel, Raw: row('U', 1).tuple('N', "0", toasted{}, "c")},
		change.Change{Operation: change.Update, Relation: rel, Raw: row('U', 1).tuple('N', "99", toasted{}, "c")})
	d := NewDecoder()
	d.images.bytes = maxImages - 50*(128+10)
	d.Follow(changes)
	var unchanged []int
	for i := range changes {
		r, err := d.Decode(&changes[i])
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Unchanged()) > 0 {
			unchanged = append(unchanged, i)
		}
	}
	if fmt.Sprint(unchanged) != "[100]" || d.images.bytes > maxImages {
		t.Errorf("unchanged in changes %v, %d bytes", unchanged, d.images.bytes)
	}
}

// Against a table that is simply kept: whatever happens, a value that is filled
// in is the row's.
func TestAFilledValueIsAlwaysTheRows(t *testing.T) {
	filled := 0
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		type content struct{ v, w string }
		rows := map[int]content{}
		rel := table(nil, keyed...)
		var changes []change.Change
		var want []string
		add := func(op change.Operation, raw builder, after string) {
			changes = append(changes, change.Change{Operation: op, Relation: rel, Raw: raw})
			want = append(want, after)
		}
		after := func(id int, c content) string { return fmt.Sprintf(`{"id":%d,"v":%q,"w":%q}`, id, c.v, c.w) }
		for i := range 60 {
			id := rnd.IntN(5)
			old, there := rows[id]
			fresh := func() string { return fmt.Sprint("value", i, "-", rnd.IntN(1000)) }
			switch n := rnd.IntN(20); {
			case n == 0:
				clear(rows)
				add(change.Truncate, truncate(1), "")
			case n == 1: // rewritten beside the stream, and announced again
				for id, c := range rows {
					rows[id] = content{"new " + c.v, c.w}
				}
				other := *rel
				rel = &other
			case !there:
				c := content{fresh(), fresh()}
				rows[id] = c
				add(change.Insert, row('I', 1).tuple('N', fmt.Sprint(id), c.v, c.w), after(id, c))
			case n < 4:
				delete(rows, id)
				add(change.Delete, row('D', 1).tuple('K', fmt.Sprint(id), nil, nil), "")
			default:
				c, to := old, id
				var v, w any = toasted{}, toasted{}
				if rnd.IntN(3) == 0 {
					c.v = fresh()
					v = c.v
				}
				if rnd.IntN(2) == 0 {
					c.w = fresh()
					w = c.w
				}
				raw := row('U', 1)
				if n < 9 {
					if _, taken := rows[(id+1)%5]; !taken {
						to = (id + 1) % 5
						raw = raw.tuple('K', fmt.Sprint(id), nil, nil)
					}
				}
				delete(rows, id)
				rows[to] = c
				add(change.Update, raw.tuple('N', fmt.Sprint(to), v, w), after(to, c))
			}
		}
		// A segment begins anywhere.
		from := rnd.IntN(10)
		for i, got := range follow(t, 1+rnd.IntN(20), changes[from:]...) {
			got, unchanged, missing := strings.Cut(got, "} ")
			full := want[from+i]
			if !missing {
				if got != full {
					t.Fatalf("seed %d, change %d: %s, want %s", seed, from+i, got, full)
				}
				filled++
				continue
			}
			for _, part := range strings.Split(strings.TrimPrefix(got, "{"), ",") {
				if !strings.Contains(full, part) {
					t.Fatalf("seed %d, change %d: %s (unchanged %s), want parts of %s", seed, from+i, got, unchanged, full)
				}
			}
		}
	}
	if filled < 5000 {
		t.Errorf("only %d images are whole", filled)
	}
}
