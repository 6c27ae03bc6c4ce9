package rowfile

import (
	"bytes"
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// readAll reads a whole Parquet file back, as an Arrow table for the values and
// as a file reader for its form.
func readAll(t *testing.T, data []byte) (arrow.Table, *file.Reader) {
	t.Helper()
	r, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("open the Parquet file: %v", err)
	}
	t.Cleanup(func() { r.Close() })
	fr, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatalf("read the Parquet file: %v", err)
	}
	table, err := fr.ReadTable(context.Background())
	if err != nil {
		t.Fatalf("read the Parquet file: %v", err)
	}
	t.Cleanup(table.Release)
	return table, r
}

// columnTexts gives a column as text, row by row, null as "(null)".
func columnTexts(t *testing.T, table arrow.Table, name string) []string {
	t.Helper()
	indices := table.Schema().FieldIndices(name)
	if len(indices) != 1 {
		t.Fatalf("file has %d columns called %s", len(indices), name)
	}
	var out []string
	for _, chunk := range table.Column(indices[0]).Data().Chunks() {
		for i := range chunk.Len() {
			out = append(out, chunk.ValueStr(i))
		}
	}
	return out
}
