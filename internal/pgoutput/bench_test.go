package pgoutput

import (
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

func BenchmarkFrame(b *testing.B) {
	insert := []byte(row('I', 1).tuple('N', "123456", strings.Repeat("value ", 30)))
	f := newFramer(false)
	feed(b, f, relation(1, "a", 'd', twoColumns...), begin(1, 1, 1))
	b.SetBytes(int64(len(insert)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Frame(1, received, insert); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	c := change.Change{
		Operation: change.Insert,
		Relation: table(nil, twoColumns[0], twoColumns[1], change.Column{Name: "amount", Type: oidNumeric},
			change.Column{Name: "created_at", Type: oidTimestampTZ}, change.Column{Name: "ok", Type: oidBool}),
		Raw: row('I', 1).tuple('N', "123456", strings.Repeat("value ", 30), "12345.67", "2026-01-02 03:04:05.678901+00", "t"),
	}
	d := NewDecoder()
	var dst []byte
	b.SetBytes(int64(len(c.Raw)))
	b.ReportAllocs()
	for b.Loop() {
		r, err := d.Decode(&c)
		if err != nil {
			b.Fatal(err)
		}
		if dst, err = r.AppendAfter(dst[:0]); err != nil {
			b.Fatal(err)
		}
	}
}
