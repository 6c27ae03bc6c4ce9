package lake_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/lake/laketest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

func TestTheFooterSaysWhatTheFormatSays(t *testing.T) {
	ref := laketest.Chain("s3://b", 2, 1)[1]
	ref.Digest = 0xABC
	want := [][2]string{
		{"tidemark.pipeline", "orders"},
		{"tidemark.system_id", "7301234567890123456"},
		{"tidemark.first", "00000001-0000000000001100-0000000000"},
		{"tidemark.last", "00000001-0000000000001100-0000000001"},
		{"tidemark.follows", "00000001-0000000000001000-0000000000"},
		{"tidemark.rows", "2"},
		{"tidemark.digest", "0000000000000abc"},
		{"tidemark.format", "1"},
	}
	if got := lake.MetadataOf(ref).KeyValues(); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestMetadataIsReadBackAmongOtherPairsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfNDistinct(genPosition(), 3, 3, rapid.ID).Draw(t, "positions")
		slices.SortFunc(p, func(a, b position) int { return a.Compare(b) })
		m := lake.Metadata{
			Pipeline: rapid.String().Draw(t, "pipeline"), SystemID: rapid.String().Draw(t, "system"),
			Follows: p[0], First: p[1], Last: p[2],
			Rows:   rapid.Int64Min(1).Draw(t, "rows"),
			Digest: segment.Digest(rapid.Uint64().Draw(t, "digest")), Format: lake.FormatVersion,
		}
		kvs := append(m.KeyValues(), [2]string{"ARROW:schema", "x"})
		kvs = rapid.Permutation(kvs).Draw(t, "order")
		if got, err := lake.ParseMetadata(kvs); err != nil || got != m {
			t.Fatalf("%+v, %v, want %+v", got, err, m)
		}
	})
}

func TestMetadataThatIsNotWholeIsRefused(t *testing.T) {
	good := lake.MetadataOf(laketest.Chain("s3://b", 1, 1)[0]).KeyValues()
	with := func(key, value string) [][2]string {
		kvs := slices.Clone(good)
		for i := range kvs {
			if kvs[i][0] == key {
				kvs[i][1] = value
			}
		}
		return kvs
	}
	for i := range good {
		if _, err := lake.ParseMetadata(slices.Delete(slices.Clone(good), i, i+1)); err == nil {
			t.Errorf("accepted without %s", good[i][0])
		}
		if _, err := lake.ParseMetadata(append(slices.Clone(good), good[i])); err == nil {
			t.Errorf("accepted with two %s", good[i][0])
		}
	}
	for _, c := range [][2]string{
		{"tidemark.first", "x"}, {"tidemark.rows", "0"}, {"tidemark.rows", "many"}, {"tidemark.digest", "ABC"},
		{"tidemark.format", "0"}, {"tidemark.format", "2"}, {"tidemark.follows", "00000001-0000000000001000-0000000000"},
	} {
		if m, err := lake.ParseMetadata(with(c[0], c[1])); err == nil {
			t.Errorf("%s=%s is read as %+v", c[0], c[1], m)
		}
	}
}

func TestTheFooterIsReadWithoutTheRows(t *testing.T) {
	ref := laketest.Chain("memory", 1, 1)[0]
	ref.Rows = 100_000
	body, err := laketest.Object(ref)
	if err != nil {
		t.Fatal(err)
	}
	store := &counting{Store: lake.NewMemory()}
	l := lake.New("memory", store)
	if _, err := l.PutSegment(t.Context(), ref, body); err != nil {
		t.Fatal(err)
	}
	m, err := l.ReadMetadata(t.Context(), lake.Key(ref))
	if err != nil || m != lake.MetadataOf(ref) {
		t.Fatalf("%+v, %v", m, err)
	}
	if store.read > len(body)/10 || store.read > 32<<10 {
		t.Errorf("%d of %d bytes were read", store.read, len(body))
	}
}

func TestALargeFooterIsReadToo(t *testing.T) {
	ref := laketest.Chain("memory", 1, 1)[0]
	kvs := append(lake.MetadataOf(ref).KeyValues(), [2]string{"other", strings.Repeat("x", 100<<10)})
	body, err := laketest.Parquet(ref.Rows, kvs)
	if err != nil {
		t.Fatal(err)
	}
	l := lake.New("memory", lake.NewMemory())
	if _, err := l.PutSegment(t.Context(), ref, body); err != nil {
		t.Fatal(err)
	}
	if m, err := l.ReadMetadata(t.Context(), lake.Key(ref)); err != nil || m != lake.MetadataOf(ref) {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestAFileThatIsNotOursIsUnreadable(t *testing.T) {
	ref := laketest.Chain("memory", 1, 1)[0]
	good, err := laketest.Object(ref)
	if err != nil {
		t.Fatal(err)
	}
	other, err := laketest.Parquet(3, nil)
	if err != nil {
		t.Fatal(err)
	}
	otherRows, err := laketest.Parquet(ref.Rows+1, lake.MetadataOf(ref).KeyValues())
	if err != nil {
		t.Fatal(err)
	}
	huge := slices.Clone(good)
	copy(huge[len(huge)-8:], "\xff\xff\xff\xff")
	store := lake.NewMemory()
	l := lake.New("memory", store)
	for name, body := range map[string][]byte{
		"empty": {}, "text": []byte("hello, world"), "cut": good[:len(good)-1], "head cut": good[len(good)-8:],
		"another's": other, "rows": otherRows, "huge footer": huge,
		"zeros": append(make([]byte, 100), "\x20\x00\x00\x00PAR1"...),
	} {
		if _, err := store.Put(t.Context(), "k", body, lake.Condition{}); err != nil {
			t.Fatal(err)
		}
		if m, err := l.ReadMetadata(t.Context(), "k"); !errors.Is(err, lake.ErrUnreadable) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	if _, err := l.ReadMetadata(t.Context(), "none"); !errors.Is(err, lake.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

// The Parquet library panics on some of these.
func TestNoDamagedByteOfAFooterStopsTheProcess(t *testing.T) {
	good := object(t, laketest.Chain("memory", 1, 1)[0])
	footer := len(good) - 8 - int(binary.LittleEndian.Uint32(good[len(good)-8:]))
	store := lake.NewMemory()
	l := lake.New("memory", store)
	for at := footer; at < len(good)-8; at++ {
		for _, value := range []byte{0x00, 0x01, 0x7f, 0x9c, 0xff} {
			body := bytes.Clone(good)
			body[at] = value
			if _, err := store.Put(t.Context(), "k", body, lake.Condition{}); err != nil {
				t.Fatal(err)
			}
			if _, err := l.ReadMetadata(t.Context(), "k"); err != nil && !errors.Is(err, lake.ErrUnreadable) {
				t.Errorf("byte %d as %d: %v", at, value, err)
			}
		}
	}
}
