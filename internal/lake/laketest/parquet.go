package laketest

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// Parquet makes a small Parquet file of the given number of rows with the given
// pairs in its footer. Its one column is not one of the lake's.
func Parquet(rows int64, metadata [][2]string) ([]byte, error) {
	fields := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	var out bytes.Buffer
	w, err := pqarrow.NewFileWriter(fields, &out, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	if err != nil {
		return nil, fmt.Errorf("write parquet: %w", err)
	}
	b := array.NewInt64Builder(memory.DefaultAllocator)
	defer b.Release()
	for n := range rows {
		b.Append(n)
	}
	column := b.NewArray()
	defer column.Release()
	record := array.NewRecordBatch(fields, []arrow.Array{column}, rows)
	defer record.Release()
	if err := w.Write(record); err != nil {
		return nil, fmt.Errorf("write parquet: %w", err)
	}
	for _, kv := range metadata {
		if err := w.AppendKeyValueMetadata(kv[0], kv[1]); err != nil {
			return nil, fmt.Errorf("write parquet: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("write parquet: %w", err)
	}
	return out.Bytes(), nil
}

// Object makes a file that lake.PutSegment takes for ref.
func Object(ref segment.Ref) ([]byte, error) {
	return Parquet(ref.Rows, lake.MetadataOf(ref).KeyValues())
}

// Pipeline and SystemID are those of Identity and Chain.
const (
	Pipeline = "orders"
	SystemID = "7301234567890123456"
)

// Identity is that of a lake whose pipeline began at LSN 0/1000 on timeline 1.
func Identity() lake.Identity {
	return lake.Identity{
		Pipeline: Pipeline, SystemID: SystemID, Timeline: 1, StartLSN: 0x1000,
		Slot: "tidemark_orders", Database: "shop",
		CreatedAt: time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC),
	}
}

// Chain makes n references that form a chain from Identity's head, with a day's
// change after every perDay of them. Each has one to three rows.
func Chain(lakeURL string, n, perDay int) []segment.Ref {
	day, _ := change.ParseDay("2024-05-01")
	refs := make([]segment.Ref, n)
	follows := Identity().Head()
	for i := range refs {
		first := change.Position{Timeline: 1, LSN: 0x1000 + change.LSN(i)*0x100}
		last := first
		last.Ordinal = uint64(i % 3)
		refs[i] = segment.Ref{
			Pipeline: Pipeline, SystemID: SystemID, Lake: lakeURL,
			First: first, Last: last, Follows: follows,
			Day:  day + change.Day(i/perDay),
			Rows: int64(i%3) + 1, Bytes: 100, Digest: segment.Digest(i + 1),
		}
		follows = last
	}
	return refs
}

// Fill puts the segments into the lake, as its identity if it has none, and
// their end into its ack.
func Fill(ctx context.Context, l *lake.Lake, refs []segment.Ref) error {
	if err := l.CreateIdentity(ctx, Identity()); err != nil {
		return err
	}
	ack := lake.AckRecord{Last: Identity().Head(), Ack: Identity().StartLSN, Timeline: 1, Writer: "laketest", At: time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)}
	for _, ref := range refs {
		body, err := Object(ref)
		if err != nil {
			return err
		}
		if _, err := l.PutSegment(ctx, ref, body); err != nil {
			return err
		}
		ack.Last, ack.Ack = ref.Last, ref.Last.LSN+0x10
	}
	_, err := l.WriteAck(ctx, ack, "")
	return err
}
