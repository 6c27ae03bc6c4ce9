package rowfile

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/pgoutput"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestRowsComeBackAsTheyWere(t *testing.T) {
	data, stats := write(t, false, Options{}, sample())
	table, _ := readAll(t, data)
	for _, c := range []struct{ column, want string }{
		{"table", `public."Accounts"|public."Accounts"|public."Accounts"|public."Accounts"|public."Accounts"|public."Accounts"|(null)`},
		{"operation", "insert|update|update|delete|truncate|truncate|message"},
		{"timestamp", strings.Repeat("2026-01-02T00:00:00.000002Z|", 7)},
		{"lsn", "97500004352|97500004353|97500004354|97500004355|97500004356|97500004357|97500004358"},
		{"before", `(null)|{"id":1}|(null)|{"id":2}|(null)|(null)|(null)`},
		{"after", `{"id":1,"name":"say \"hi\"","note":null}|{"id":2,"name":"say \"hi\""}|{"id":2,"name":"b","note":"sad"}|(null)|(null)|(null)|{"prefix":"p","content":"hi"}`},
		{"commit_time", strings.Repeat("2026-01-02T00:00:00.000001Z|", 7)},
		{"commit_lsn", strings.Repeat("97500059720|", 7)},
		{"ordinal", "0|1|2|3|4|5|6"},
		{"xid", strings.Repeat("4294967295|", 7)},
		{"unchanged", `[]|["note"]|[]|[]|[]|[]|[]`},
	} {
		if got := strings.Join(columnTexts(t, table, c.column), "|"); got != strings.TrimSuffix(c.want, "|") {
			t.Errorf("%s is\n%s, want\n%s", c.column, got, c.want)
		}
	}
	if stats.Rows != 7 || stats.RowGroups != 1 {
		t.Errorf("stats are %+v", stats)
	}
}

func TestUnchangedValuesAreFilledAcrossBatchesOfTheSegment(t *testing.T) {
	sample := sample()
	changes := []change.Change{
		sample[0],
		{Position: sample[1].Position, Relation: accounts, Operation: change.Update, Raw: tuple(row('U'), 'N', "1", toasted, "ok")},
		{Position: sample[2].Position, Relation: accounts, Operation: change.Update, Raw: tuple(row('U'), 'N', "1", toasted, toasted)},
	}
	want := `{"id":1,"name":"say \"hi\"","note":null}|{"id":1,"name":"say \"hi\"","note":"ok"}|{"id":1,"name":"say \"hi\"","note":"ok"}`
	data, _ := write(t, false, Options{}, changes[:1], changes[1:2], nil, changes[2:])
	table, _ := readAll(t, data)
	if got := strings.Join(columnTexts(t, table, "after"), "|"); got != want {
		t.Errorf("after is %s", got)
	}
	if got := strings.Join(columnTexts(t, table, "unchanged"), "|"); got != "[]|[]|[]" {
		t.Errorf("unchanged is %s", got)
	}

	// Another file is another segment.
	var out bytes.Buffer
	w, err := NewWriter(&out, Options{})
	for _, segment := range [][]change.Change{changes[:1], changes[1:]} {
		out.Reset()
		if err == nil {
			err = w.Reset(&out, Options{})
		}
		if err == nil {
			err = w.Write(segment)
		}
		if err == nil {
			_, err = w.Close()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	table, _ = readAll(t, out.Bytes())
	if got := strings.Join(columnTexts(t, table, "unchanged"), "|"); got != `["name"]|["name","note"]` {
		t.Errorf("unchanged is %s", got)
	}
}

func TestAValueThatWasReadBackIsNamedAsThat(t *testing.T) {
	sample := sample()
	edit := func(i int, key string, xid uint32) change.Change {
		return change.Change{Position: sample[i].Position, Relation: accounts, Operation: change.Update, XID: xid, Raw: tuple(row('U'), 'N', key, toasted, toasted)}
	}
	var asked []string
	opts := Options{ReadBack: func(rel *change.Relation, key []change.KeyValue, xid uint32, columns []string) ([][]byte, bool, error) {
		asked = append(asked, fmt.Sprintf("%s %s=%s xid %d: %s", rel.Name, key[0].Column, key[0].Text, xid, strings.Join(columns, ",")))
		return [][]byte{[]byte("from the database"), nil}, xid == 7, nil
	}}
	data, _ := write(t, false, opts, []change.Change{edit(0, "1", 7), edit(1, "2", 8)})
	table, _ := readAll(t, data)
	for column, want := range map[string]string{
		"after":     `{"id":1,"name":"from the database","note":null}|{"id":2}`,
		"read_back": `["name","note"]|[]`,
		"unchanged": `[]|["name","note"]`,
	} {
		if got := strings.Join(columnTexts(t, table, column), "|"); got != want {
			t.Errorf("%s is %s, want %s", column, got, want)
		}
	}
	if want := []string{"Accounts id=1 xid 7: name,note", "Accounts id=2 xid 8: name,note"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
	broken := errors.New("the database is away")
	opts.ReadBack = func(*change.Relation, []change.KeyValue, uint32, []string) ([][]byte, bool, error) {
		return nil, false, broken
	}
	w, err := NewWriter(io.Discard, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write([]change.Change{edit(0, "1", 7)}); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

// Readers find columns by name, type and order: none may change unnoticed.
func TestSchemasAreAsDocumented(t *testing.T) {
	for name, raw := range map[string]bool{"rows": false, "raw": true} {
		data, _ := write(t, raw, Options{}, sample())
		_, r := readAll(t, data)
		got := r.MetaData().Schema.String()
		golden := filepath.Join("testdata", name+".schema")
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("schema of %s is\n%s", name, got)
		}
		for i := range r.MetaData().Schema.NumColumns() {
			col, err := r.MetaData().RowGroup(0).ColumnChunk(i)
			if err != nil {
				t.Fatal(err)
			}
			if col.Compression() != compress.Codecs.Zstd {
				t.Errorf("%s: column %d is compressed with %s", name, i, col.Compression())
			}
		}
	}
}

func TestMetadataStandsInTheFooterInItsOrder(t *testing.T) {
	want := [][2]string{{"tidemark.b", "1"}, {"tidemark.a", "zwei"}, {"tidemark.empty", ""}}
	for _, raw := range []bool{false, true} {
		data, _ := write(t, raw, Options{Metadata: want}, sample())
		_, r := readAll(t, data)
		kv := r.MetaData().KeyValueMetadata()
		var got [][2]string
		for i, k := range kv.Keys() {
			got = append(got, [2]string{k, kv.Values()[i]})
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("metadata is %v, want %v", got, want)
		}
	}
}

func TestEqualChangesGiveEqualBytes(t *testing.T) {
	changes := append(many(3000, 50), sample()...)
	for _, raw := range []bool{false, true} {
		a, _ := write(t, raw, Options{}, changes)
		b, _ := write(t, raw, Options{}, changes[:1], changes[1:2000], nil, changes[2000:])
		if !bytes.Equal(a, b) {
			t.Error("the bytes depend on how the changes were handed over")
		}
	}
}

func TestALargeFileHasSeveralRowGroups(t *testing.T) {
	changes := many(5000, 200)
	_, stats := write(t, false, Options{}, changes)
	if stats.RowGroups != 1 {
		t.Errorf("%d row groups of 1 MB, want 1", stats.RowGroups)
	}
	for _, raw := range []bool{false, true} {
		data, stats := write(t, raw, Options{RowGroupBytes: 500 << 10}, changes)
		table, r := readAll(t, data)
		if stats.RowGroups < 2 || r.NumRowGroups() != stats.RowGroups {
			t.Errorf("%d row groups, and stats say %d", r.NumRowGroups(), stats.RowGroups)
		}
		if table.NumRows() != 5000 || stats.Rows != 5000 {
			t.Errorf("%d rows, and stats say %d", table.NumRows(), stats.Rows)
		}
	}
}

func TestValuesLargerThanAChunkComeBack(t *testing.T) {
	changes := many(3, 3*chunkBytes)
	data, _ := write(t, false, Options{}, changes)
	table, _ := readAll(t, data)
	for i, v := range columnTexts(t, table, "after") {
		want := fmt.Sprintf(`{"id":%d,"name":"%s","note":"ok"}`, i, strings.Repeat(string(rune('a'+i)), 3*chunkBytes))
		if v != want {
			t.Errorf("value %d of %d bytes differs, want %d bytes", i, len(v), len(want))
		}
	}
}

func TestAFileWithoutRowsCanBeRead(t *testing.T) {
	for _, raw := range []bool{false, true} {
		data, stats := write(t, raw, Options{})
		if table, _ := readAll(t, data); table.NumRows() != 0 || stats.Rows != 0 {
			t.Errorf("%d rows, stats %+v", table.NumRows(), stats)
		}
	}
}

// The raw bytes belong to the ring or a network buffer.
func TestChangesAreNotKeptAfterWrite(t *testing.T) {
	for _, raw := range []bool{false, true} {
		want, _ := write(t, raw, Options{}, sample())
		changes := sample()
		var out bytes.Buffer
		var w changeWriter
		var err error
		if raw {
			w, err = NewRawWriter(&out, Options{})
		} else {
			w, err = NewWriter(&out, Options{})
		}
		if err == nil {
			err = w.Write(changes)
		}
		for i := range changes {
			clear(changes[i].Raw)
		}
		clear(changes)
		if err == nil {
			_, err = w.Close()
		}
		if err != nil || !bytes.Equal(out.Bytes(), want) {
			t.Errorf("raw %v: error %v, equal %v", raw, err, bytes.Equal(out.Bytes(), want))
		}
	}
}

// A file that lacks a row must never look finished.
func TestAFailedFileCannotBeClosed(t *testing.T) {
	bad := sample()
	bad[3].Raw = bad[3].Raw[:9]
	var out bytes.Buffer
	w, err := NewWriter(&out, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(bad); !errors.Is(err, pgoutput.ErrMalformed) || !strings.Contains(err.Error(), bad[3].Position.String()) {
		t.Errorf("error is %v, want ErrMalformed that names %s", err, bad[3].Position)
	}
	if err := w.Write(sample()); !errors.Is(err, pgoutput.ErrMalformed) {
		t.Errorf("the next Write gives %v", err)
	}
	if _, err := w.Close(); !errors.Is(err, pgoutput.ErrMalformed) {
		t.Errorf("Close gives %v", err)
	}
	if bytes.HasSuffix(out.Bytes(), []byte("PAR1")) && out.Len() > 4 {
		t.Error("the file has a footer")
	}

	// The same Writer is good for another file.
	out.Reset()
	if err := w.Reset(&out, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(sample()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if want, _ := write(t, false, Options{}, sample()); !bytes.Equal(out.Bytes(), want) {
		t.Error("after Reset the file differs from a new Writer's")
	}
	if err := w.Write(sample()); err == nil {
		t.Error("a closed Writer takes changes")
	}
	if _, err := w.Close(); err == nil {
		t.Error("a Writer can be closed twice")
	}
}

// What an operator sees of a message that no decoder understands: where it
// stands, and a bounded piece of it.
func TestAnErrorShowsTheBeginningOfTheMessageAndNoMore(t *testing.T) {
	short, long := sample(), sample()
	short[3].Raw = short[3].Raw[:9]
	long[3].Raw = append(slices.Clone(short[3].Raw), bytes.Repeat([]byte("secret"), 100)...)
	for _, c := range []struct {
		name    string
		changes []change.Change
		says    string
	}{
		{"short", short, fmt.Sprintf("the message has 9 bytes, in hex %x)", short[3].Raw)},
		{"long", long, fmt.Sprintf("the message has 609 bytes, the first 64 in hex %x)", long[3].Raw[:64])},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, err := NewWriter(io.Discard, Options{})
			if err != nil {
				t.Fatal(err)
			}
			err = w.Write(c.changes)
			for _, want := range []string{c.says, "table " + c.changes[3].Relation.QualifiedName(), c.changes[3].Position.String()} {
				if !strings.Contains(fmt.Sprint(err), want) {
					t.Errorf("error %v lacks %q", err, want)
				}
			}
			if strings.Contains(fmt.Sprint(err), "secret") {
				t.Errorf("error %v shows text of the row", err)
			}
		})
	}
}

// failing fails once n bytes have been written, and must not be closed.
type failing struct {
	t *testing.T
	n int
}

var errFull = errors.New("disk is full")

func (f *failing) Write(p []byte) (int, error) {
	if f.n -= len(p); f.n < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func (f *failing) Close() error {
	f.t.Error("the writer below was closed")
	return nil
}

func TestAnErrorOfTheWriterBelowComesOut(t *testing.T) {
	whole, _ := write(t, false, Options{RowGroupBytes: 50 << 10}, many(1200, 200))
	for n := 0; n <= len(whole); n += len(whole)/12 + 1 {
		w, err := NewWriter(&failing{t, n}, Options{RowGroupBytes: 50 << 10})
		if err == nil {
			err = w.Write(many(1200, 200))
		}
		if err == nil {
			_, err = w.Close()
		}
		if !errors.Is(err, errFull) {
			t.Errorf("with room for %d of %d bytes: error %v", n, len(whole), err)
		}
	}
	w, err := NewWriter(&failing{t, len(whole)}, Options{RowGroupBytes: 50 << 10})
	if err == nil {
		err = w.Write(many(1200, 200))
	}
	if err == nil {
		_, err = w.Close()
	}
	if err != nil {
		t.Errorf("with room for all: %v", err)
	}
}
