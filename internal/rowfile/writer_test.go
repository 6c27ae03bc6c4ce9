package rowfile

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

func TestSmoke(t *testing.T) {
	rel := &change.Relation{OID: 7, Namespace: "public", Name: "t", Identity: 'd', Columns: []change.Column{{Name: "id", Type: 23, Key: true}, {Name: "v", Type: 25}}}
	raw := []byte{'I', 0, 0, 0, 7, 'N', 0, 2, 't', 0, 0, 0, 1, '5', 'n'}
	_ = binary.BigEndian
	c := change.Change{Position: change.Position{Timeline: 1, LSN: 100, Ordinal: 2}, Relation: rel, Raw: raw, Operation: change.Insert, XID: 3}
	var buf bytes.Buffer
	w, err := NewWriter(&buf, Options{Metadata: [][2]string{{"a", "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write([]change.Change{c, c}); err != nil {
		t.Fatal(err)
	}
	st, err := w.Close()
	t.Log(st, err)
	table, r := readAll(t, buf.Bytes())
	t.Log(r.MetaData().Schema, r.MetaData().KeyValueMetadata())
	for _, f := range table.Schema().Fields() {
		t.Log(f, columnTexts(t, table, f.Name))
	}
}
