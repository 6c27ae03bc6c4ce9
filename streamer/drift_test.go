package streamer

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/pgtest"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

func TestTablesThatDrift(t *testing.T) {
	known, unseen := []wantedTable{{"public.a", 1}}, []wantedTable{{"public.a", 0}}
	for _, c := range []struct {
		name   string
		wanted []wantedTable
		now    []replication.TableState
		want   []Drift
	}{
		{"as it was", known, []replication.TableState{{Name: "public.a", OID: 1, Published: true}}, nil},
		{"another table comes", known, []replication.TableState{{Name: "public.a", OID: 1, Published: true}, {Name: "public.b", OID: 2, Published: true}}, nil},
		{"left the publication", known, []replication.TableState{{Name: "public.a", OID: 1}}, []Drift{{Table: "public.a", Kind: Unpublished}}},
		{"dropped", known, nil, []Drift{{Table: "public.a", Kind: Dropped}}},
		{"dropped, and asked for", known, []replication.TableState{{Name: "public.a", Asked: true}}, []Drift{{Table: "public.a", Kind: Dropped}}},
		{"made anew, not published", known, []replication.TableState{{Name: "public.a", OID: 2}}, []Drift{{Table: "public.a", Kind: Recreated}}},
		{"made anew, published", known, []replication.TableState{{Name: "public.a", OID: 2, Published: true}}, []Drift{{Table: "public.a", Kind: Recreated, Published: true}}},
		{"renamed", known, []replication.TableState{{Name: "public.b", OID: 1, Published: true}}, nil},
		{"renamed, another one in its place", known, []replication.TableState{{Name: "public.b", OID: 1, Published: true}, {Name: "public.a", OID: 2}}, nil},
		{"renamed, left the publication", known, []replication.TableState{{Name: "public.b", OID: 1}}, []Drift{{Table: "public.b", Kind: Unpublished}}},
		{"never seen", unseen, []replication.TableState{{Name: "public.a", Asked: true}}, []Drift{{Table: "public.a", Kind: Dropped}}},
		{"never seen, made", unseen, []replication.TableState{{Name: "public.a", OID: 2, Published: true}}, nil},
		{"never published", unseen, []replication.TableState{{Name: "public.a", OID: 2}}, []Drift{{Table: "public.a", Kind: Unpublished}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i := range c.want {
				c.want[i].wanted = "public.a"
			}
			if got := driftOf(c.wanted, c.now); !reflect.DeepEqual(got, c.want) {
				t.Errorf("drift is %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestADriftIsToldOnce(t *testing.T) {
	var g driftGuard
	there := []replication.TableState{{Name: "public.a", OID: 1, Published: true}}
	left := []replication.TableState{{Name: "public.a", OID: 1}}
	begin := time.Unix(1000, 0)
	for i, c := range []struct {
		now         []replication.TableState
		begun, over int
	}{{there, 0, 0}, {left, 1, 0}, {left, 0, 0}, {nil, 1, 0}, {there, 0, 1}, {there, 0, 0}} {
		begun, over := g.take(c.now, false, begin.Add(time.Duration(i)*time.Minute))
		if len(begun) != c.begun || len(over) != c.over {
			t.Errorf("look %d: begun %v, over %v", i, begun, over)
		}
		if i == 2 && !g.list()[0].Since.Equal(begin.Add(time.Minute)) {
			t.Errorf("it is since %s", g.list()[0].Since)
		}
	}
}

func TestTablesThatLeaveThePublicationAreSeen(t *testing.T) {
	w := newWorld(t, pgtest.Options{})
	w.exec(`CREATE TABLE "Odd.name" (id int); CREATE TABLE leaf_of (id int PRIMARY KEY) PARTITION BY LIST (id); CREATE TABLE leaf PARTITION OF leaf_of FOR VALUES IN (1)`)
	w.exec(`ALTER PUBLICATION p ADD TABLE "Odd.name", leaf_of`)
	everything := w.start(func(c *Config) { c.driftEvery = 50 * time.Millisecond })
	stands := func(p *process, want ...string) {
		t.Helper()
		got := []string{}
		w.until(fmt.Sprintf("the drift is %q", want), func() bool {
			got = got[:0]
			for _, d := range p.Status().Drift {
				got = append(got, d.String())
			}
			return reflect.DeepEqual(got, append([]string{}, want...))
		})
	}
	looked := func(p *process) {
		t.Helper()
		w.until("the tables were looked at", func() bool {
			_, oids := p.drift.asks()
			return len(oids) > 0
		})
	}
	looked(everything)
	stands(everything)
	w.exec(`ALTER PUBLICATION p DROP TABLE "Odd.name"`)
	stands(everything, `public."Odd.name" is not published`)
	w.exec(`ALTER TABLE "Odd.name" RENAME TO other`)
	stands(everything, "public.other is not published")
	w.exec(`ALTER PUBLICATION p ADD TABLE other`)
	stands(everything)
	w.exec(`DROP TABLE leaf_of`)
	stands(everything, "public.leaf does not exist")
	w.exec(`DROP TABLE other; CREATE TABLE "Odd.name" (id int)`)
	stands(everything, `public."Odd.name" was dropped and made anew, and is not published`, "public.leaf does not exist")
	w.exec(`ALTER PUBLICATION p ADD TABLE "Odd.name"`)
	stands(everything, `public."Odd.name" was dropped and made anew, and is published`, "public.leaf does not exist")
	w.insert(3)
	w.caughtUp()
	if err := everything.stop(); err != nil {
		t.Fatal(err)
	}

	// Named tables are wanted whatever is published.
	w.exec(`CREATE TABLE root (id int PRIMARY KEY) PARTITION BY LIST (id); CREATE TABLE part PARTITION OF root FOR VALUES IN (1); ALTER PUBLICATION p ADD TABLE root`)
	named := w.start(func(c *Config) {
		c.driftEvery = 50 * time.Millisecond
		c.Tables = []string{"public.T", `public.root`, "public.gone"}
	})
	stands(named, "public.gone does not exist")
	w.exec(`CREATE TABLE gone (id int)`)
	stands(named, "public.gone is not published")
	w.exec(`ALTER PUBLICATION p ADD TABLE gone`)
	stands(named)
	w.exec(`ALTER PUBLICATION p DROP TABLE root`)
	stands(named, "public.root is not published")
	w.checkRows()
}
