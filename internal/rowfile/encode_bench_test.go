package rowfile

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// benchColumns are those of the table that make bench drains, with their types.
var benchColumns = []struct {
	name string
	oid  uint32
}{{"id", 20}, {"customer", 23}, {"amount", 1700}, {"note", 25}, {"at", 1184}}

// benchValues are a row's values: as Postgres sends them, and as a program has
// them that has decoded them.
func benchValues(i int) (texts []string, decoded map[string]any) {
	note := fmt.Sprintf("%016x%016x", uint64(i)*0x9E3779B97F4A7C15, uint64(i)*0xC2B2AE3D27D4EB4F)
	at := time.Date(2026, 11, 30, 6, 47, 18, i*1000, time.UTC)
	texts = []string{fmt.Sprint(1_000_000 + i), fmt.Sprint(i % 10007), fmt.Sprintf("%d.%02d", i/100, i%100), note, at.Format("2006-01-02 15:04:05.999999") + "+00"}
	return texts, map[string]any{
		"id": int64(1_000_000 + i), "customer": int32(i % 10007), "amount": json.Number(texts[2]), "note": note, "at": at,
	}
}

// benchSegment is a segment of inserts, as the ring has it.
func benchSegment(rows int) (changes []change.Change) {
	relation := &change.Relation{OID: 16400, Namespace: "bench", Name: "rows", Identity: 'd'}
	for i, c := range benchColumns {
		relation.Columns = append(relation.Columns, change.Column{Name: c.name, Type: c.oid, Modifier: -1, Key: i == 0})
	}
	for i := range rows {
		texts, _ := benchValues(i)
		raw := append(binary.BigEndian.AppendUint32([]byte{'I'}, relation.OID), 'N', 0, byte(len(texts)))
		for _, text := range texts {
			raw = append(binary.BigEndian.AppendUint32(append(raw, 't'), uint32(len(text))), text...)
		}
		lsn := change.LSN(0x1000000 + i*200)
		changes = append(changes, change.Change{
			Position: change.Position{Timeline: 1, LSN: lsn + 50, Ordinal: uint64(i % 1000)}, LSN: lsn, XID: uint32(700 + i/1000),
			CommitTime: change.TimeOf(time.Date(2026, 11, 30, 6, 47, 19, 0, time.UTC)), Received: change.TimeOf(time.Date(2026, 11, 30, 6, 47, 19, i*500, time.UTC)),
			Operation: change.Insert, Relation: relation, Raw: raw,
		})
	}
	return changes
}

// benchMaps are the same rows, as the baseline has them.
func benchMaps(rows int) (maps []map[string]any) {
	for i := range rows {
		_, decoded := benchValues(i)
		maps = append(maps, decoded)
	}
	return maps
}

var benchSizes = []int{1000, 10_000}

// BenchmarkEncode is a segment's encoding: from raw messages to a Parquet file.
func BenchmarkEncode(b *testing.B) {
	for _, rows := range benchSizes {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			changes := benchSegment(rows)
			var out bytes.Buffer
			w, err := NewWriter(&out, Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				out.Reset()
				if err := w.Reset(&out, Options{}); err != nil {
					b.Fatal(err)
				}
				if err := w.Write(changes); err != nil {
					b.Fatal(err)
				}
				if _, err := w.Close(); err != nil {
					b.Fatal(err)
				}
			}
			reportEncode(b, rows, out.Len())
		})
	}
}

// BenchmarkEncodeByHand is what a program without Tidemark does for the same
// columns: rows that are maps already, encoding/json, an Arrow record, and
// arrow-go's writer with the same compression.
func BenchmarkEncodeByHand(b *testing.B) {
	for _, rows := range benchSizes {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			changes, maps := benchSegment(rows), benchMaps(rows)
			var out bytes.Buffer
			b.ReportAllocs()
			for b.Loop() {
				out.Reset()
				if err := encodeByHand(&out, changes, maps); err != nil {
					b.Fatal(err)
				}
			}
			reportEncode(b, rows, out.Len())
		})
	}
}

func reportEncode(b *testing.B, rows, size int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows), "ns/row")
	b.ReportMetric(float64(size), "file-bytes")
}

func encodeByHand(out *bytes.Buffer, changes []change.Change, rows []map[string]any) error {
	micros := &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "table", Type: arrow.BinaryTypes.String}, {Name: "operation", Type: arrow.BinaryTypes.String},
		{Name: "timestamp", Type: micros}, {Name: "lsn", Type: arrow.PrimitiveTypes.Int64},
		{Name: "before", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "after", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "commit_time", Type: micros}, {Name: "commit_lsn", Type: arrow.PrimitiveTypes.Int64},
		{Name: "ordinal", Type: arrow.PrimitiveTypes.Int64}, {Name: "xid", Type: arrow.PrimitiveTypes.Int64},
	}, nil)
	builder := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer builder.Release()
	for i, row := range rows {
		c := &changes[i]
		after, err := json.Marshal(row)
		if err != nil {
			return err
		}
		builder.Field(0).(*array.StringBuilder).Append(c.Relation.Namespace + "." + c.Relation.Name)
		builder.Field(1).(*array.StringBuilder).Append("insert")
		builder.Field(2).(*array.TimestampBuilder).Append(arrow.Timestamp(c.Received))
		builder.Field(3).(*array.Int64Builder).Append(int64(c.LSN))
		builder.Field(4).(*array.StringBuilder).AppendNull()
		builder.Field(5).(*array.StringBuilder).Append(string(after))
		builder.Field(6).(*array.TimestampBuilder).Append(arrow.Timestamp(c.CommitTime))
		builder.Field(7).(*array.Int64Builder).Append(int64(c.Position.LSN))
		builder.Field(8).(*array.Int64Builder).Append(int64(c.Position.Ordinal))
		builder.Field(9).(*array.Int64Builder).Append(int64(c.XID))
	}
	record := builder.NewRecordBatch()
	defer record.Release()
	w, err := pqarrow.NewFileWriter(schema, out, parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd)), pqarrow.DefaultWriterProps())
	if err != nil {
		return err
	}
	if err := w.Write(record); err != nil {
		return err
	}
	return w.Close()
}
