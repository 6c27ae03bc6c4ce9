package rowfile

import (
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// field is a column as it is declared: its place in the schema and how it is
// encoded.
type field struct {
	node schema.Node
	path string // of the leaf
	// encoding is the one without a dictionary.
	encoding   parquet.Encoding
	dictionary bool
	// stats keeps the least and greatest value in the footer. Off for large
	// values, which would bloat it.
	stats bool
}

func textField(name string, rep parquet.Repetition, dictionary, stats bool) field {
	node := must(schema.NewPrimitiveNodeLogical(name, rep, schema.StringLogicalType{}, parquet.Types.ByteArray, -1, -1))
	return field{node: node, path: name, encoding: parquet.Encodings.Plain, dictionary: dictionary, stats: stats}
}

func bytesField(name string) field {
	return field{node: schema.NewByteArrayNode(name, parquet.Repetitions.Required, -1), path: name, encoding: parquet.Encodings.Plain}
}

// intField is for values that lie near each other, for which deltas are small.
func intField(name string) field {
	return field{node: schema.NewInt64Node(name, parquet.Repetitions.Required, -1), path: name, encoding: parquet.Encodings.DeltaBinaryPacked, stats: true}
}

func timeField(name string) field {
	logical := schema.NewTimestampLogicalType(true, schema.TimeUnitMicros)
	node := must(schema.NewPrimitiveNodeLogical(name, parquet.Repetitions.Required, logical, parquet.Types.Int64, -1, -1))
	return field{node: node, path: name, encoding: parquet.Encodings.DeltaBinaryPacked, stats: true}
}

func boolField(name string) field {
	return field{node: schema.NewBooleanNode(name, parquet.Repetitions.Required, -1), path: name, encoding: parquet.Encodings.Plain}
}

// textListField is a list that is never null, of strings that are never null,
// in the three-level form of the Parquet specification.
func textListField(name string) field {
	element := must(schema.NewPrimitiveNodeLogical("element", parquet.Repetitions.Required, schema.StringLogicalType{}, parquet.Types.ByteArray, -1, -1))
	list := must(schema.NewGroupNode("list", parquet.Repetitions.Repeated, schema.FieldList{element}, -1))
	node := must(schema.NewGroupNodeLogical(name, parquet.Repetitions.Required, schema.FieldList{list}, schema.NewListLogicalType(), -1))
	return field{node: node, path: name + ".list.element", encoding: parquet.Encodings.Plain, dictionary: true}
}

// declare makes the schema and the writer properties of a file of these fields.
func declare(fields []field) (*schema.GroupNode, *parquet.WriterProperties) {
	nodes := make(schema.FieldList, len(fields))
	props := []parquet.WriterProperty{
		parquet.WithCompression(compress.Codecs.Zstd),
		// The default, 3, makes files of JSON no smaller and takes a fifth more of
		// the CPU of the whole encoding, and twice the memory: 16 MiB for each
		// compressor. docs/benchmarks.md has the figures.
		parquet.WithCompressionLevel(1),
		parquet.WithVersion(parquet.V2_LATEST),
		parquet.WithDataPageVersion(parquet.DataPageV1),
		parquet.WithCreatedBy("tidemark"),
	}
	for i, f := range fields {
		nodes[i] = f.node
		props = append(props,
			parquet.WithDictionaryFor(f.path, f.dictionary),
			parquet.WithEncodingFor(f.path, f.encoding),
			parquet.WithStatsFor(f.path, f.stats))
	}
	return must(schema.NewGroupNode("schema", parquet.Repetitions.Required, nodes, -1)), parquet.NewWriterProperties(props...)
}

// must is for schema nodes, whose constructors fail only on declarations that
// make no sense; ours are fixed, and every test writes them.
func must[T any](v T, err error) T {
	if err != nil {
		panic("rowfile: schema: " + err.Error())
	}
	return v
}
