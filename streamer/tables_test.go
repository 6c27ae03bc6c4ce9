package streamer

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// However many tables a segment has changes of, its reference names a few and
// counts the rest.
func TestAReferenceNamesAFewTablesAndCountsAll(t *testing.T) {
	const n = 10_000
	var tables tableSet
	for range 2 {
		for i := range n {
			// As after DDL, a table may come in several versions.
			tables.add(&change.Relation{Namespace: "public", Name: fmt.Sprintf("t%05d", n-i-1)})
		}
	}
	names, count := tables.names()
	if count != n || len(names) != segment.MaxTables || !slices.IsSorted(names) || names[0] != "public.t00000" {
		t.Errorf("%d tables are counted as %d and named %q", n, count, names)
	}
	if cap(names) != len(names) {
		t.Errorf("the names of %d tables are kept", cap(names))
	}
}
