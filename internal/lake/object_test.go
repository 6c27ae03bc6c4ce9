package lake_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/lake/laketest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

type position = change.Position

// counting counts the bytes that are read and the objects that are written.
type counting struct {
	lake.Store
	read int
}

func (c *counting) GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	c.read += int(length)
	return c.Store.GetRange(ctx, key, offset, length)
}

func object(t *testing.T, ref segment.Ref) []byte {
	t.Helper()
	body, err := laketest.Object(ref)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestASegmentIsStoredOnceAndFoundAfterwards(t *testing.T) {
	l := lake.New("memory", lake.NewMemory())
	ref := laketest.Chain("memory", 1, 1)[0]
	if _, found, err := l.FindSegment(t.Context(), ref); found || err != nil {
		t.Fatalf("found before it was stored: %v, %v", found, err)
	}
	body := object(t, ref)
	want := lake.Object{Key: lake.Key(ref), Rows: ref.Rows, Bytes: int64(len(body))}
	if got, err := l.PutSegment(t.Context(), ref, body); err != nil || got != want {
		t.Fatalf("%+v, %v", got, err)
	}
	want.Existed = true
	if got, err := l.PutSegment(t.Context(), ref, body); err != nil || got != want {
		t.Errorf("the second time: %+v, %v", got, err)
	}
	if got, found, err := l.FindSegment(t.Context(), ref); err != nil || !found || got != want {
		t.Errorf("find: %+v, %v, %v", got, found, err)
	}
	if _, found, err := l.FindQuarantine(t.Context(), ref); found || err != nil {
		t.Errorf("it is not in quarantine: %v, %v", found, err)
	}
	q, err := l.PutQuarantine(t.Context(), ref, body)
	if err != nil || q.Key != "_quarantine/"+lake.Key(ref) || q.Existed {
		t.Errorf("quarantine: %+v, %v", q, err)
	}
	if _, found, err := l.FindQuarantine(t.Context(), ref); !found || err != nil {
		t.Errorf("it is in quarantine: %v, %v", found, err)
	}
}

func TestALostReplyOfAPutEndsInSuccess(t *testing.T) {
	lost := errors.New("connection reset")
	replies := 0
	store := &laketest.Faulty{Store: lake.NewMemory(), AfterPut: func(string) error {
		if replies++; replies == 1 {
			return lost
		}
		return nil
	}}
	l := lake.New("memory", store)
	ref := laketest.Chain("memory", 1, 1)[0]
	if _, err := l.PutSegment(t.Context(), ref, object(t, ref)); !errors.Is(err, lost) {
		t.Fatalf("%v", err)
	}
	if o, err := l.PutSegment(t.Context(), ref, object(t, ref)); err != nil || !o.Existed {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestOtherRowsInTheSamePlaceAreAConflictAndStay(t *testing.T) {
	first := laketest.Chain("memory", 1, 1)[0]
	for name, change := range map[string]func(*segment.Ref){
		"digest":   func(r *segment.Ref) { r.Digest++ },
		"pipeline": func(r *segment.Ref) { r.Pipeline = "other" },
		"system":   func(r *segment.Ref) { r.SystemID = "1" },
	} {
		t.Run(name, func(t *testing.T) {
			l := lake.New("memory", lake.NewMemory())
			if _, err := l.PutSegment(t.Context(), first, object(t, first)); err != nil {
				t.Fatal(err)
			}
			second := first
			change(&second)
			_, err := l.PutSegment(t.Context(), second, object(t, second))
			if !errors.Is(err, lake.ErrConflict) || lake.Class(err).Kind != lake.Conflict {
				t.Errorf("put: %v", err)
			}
			if _, _, err := l.FindSegment(t.Context(), second); !errors.Is(err, lake.ErrConflict) {
				t.Errorf("find: %v", err)
			}
			if _, found, err := l.FindSegment(t.Context(), first); !found || err != nil {
				t.Errorf("the first is gone: %v, %v", found, err)
			}
		})
	}
	t.Run("rubbish", func(t *testing.T) {
		store := lake.NewMemory()
		l := lake.New("memory", store)
		if _, err := store.Put(t.Context(), lake.Key(first), []byte("rubbish"), lake.Condition{}); err != nil {
			t.Fatal(err)
		}
		if _, err := l.PutSegment(t.Context(), first, object(t, first)); !errors.Is(err, lake.ErrConflict) {
			t.Errorf("%v", err)
		}
	})
}

func TestAFileOrReferenceThatDoesNotFitIsNotStored(t *testing.T) {
	store := lake.NewMemory()
	l := lake.New("memory", store)
	refs := laketest.Chain("memory", 2, 2)
	elsewhere, invalid := refs[0], refs[0]
	elsewhere.Lake = "s3://other"
	invalid.Rows = 0
	for name, c := range map[string]struct {
		ref  segment.Ref
		body []byte
		says string
	}{
		"another segment's file": {refs[0], object(t, refs[1]), "is not that of the segment"},
		"not a file":             {refs[0], []byte("x"), "not a Parquet file"},
		"another lake's":         {elsewhere, object(t, refs[0]), "s3://other"},
		"invalid":                {invalid, object(t, refs[0]), "0 rows"},
	} {
		if _, err := l.PutSegment(t.Context(), c.ref, c.body); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for info := range store.List(t.Context(), "", "") {
		t.Errorf("%s is there", info.Key)
	}
}

func TestAttemptsThatRaceStoreOneObject(t *testing.T) {
	l := lake.New("file", lake.NewFile(t.TempDir()))
	ref := laketest.Chain("file", 1, 1)[0]
	body := object(t, ref)
	var made atomic.Int64
	var attempts sync.WaitGroup
	for range 8 {
		attempts.Go(func() {
			o, err := l.PutSegment(t.Context(), ref, body)
			if err != nil {
				t.Error(err)
			}
			if !o.Existed {
				made.Add(1)
			}
		})
	}
	attempts.Wait()
	if made.Load() != 1 {
		t.Errorf("%d attempts have made the object", made.Load())
	}
}

func TestADayIsListedWithItsQuarantine(t *testing.T) {
	l := lake.New("memory", lake.NewMemory())
	refs := laketest.Chain("memory", 6, 3) // two days of three
	for i, ref := range refs {
		put := l.PutSegment
		if i == 1 {
			put = l.PutQuarantine
		}
		if _, err := put(t.Context(), ref, object(t, ref)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Store().Put(t.Context(), refs[0].Day.Path()+"/notes.txt", []byte("x"), lake.Condition{}); err != nil {
		t.Fatal(err)
	}
	d, err := l.Day(t.Context(), refs[0].Day)
	if err != nil || len(d.Entries()) != 3 {
		t.Fatalf("%+v, %v", d, err)
	}
	for i, ref := range refs[:3] {
		e, ok := d.At(ref.First)
		if !ok || e.First != ref.First || e.Last != ref.Last || e.Quarantined != (i == 1) || e.Bytes == 0 {
			t.Errorf("at %s: %+v, %v", ref.First, e, ok)
		}
	}
	if _, ok := d.At(refs[3].First); ok {
		t.Error("an object of the next day is there")
	}
	// refs[2] has the ordinals 0 to 2.
	inside := refs[2].First
	inside.Ordinal = 1
	behind := refs[2].Last
	behind.Ordinal++
	for p, want := range map[position]bool{
		refs[0].Follows: false, refs[2].First: false, inside: true, refs[2].Last: true, behind: false,
	} {
		if e, ok := d.Across(p); ok != want || ok && e.First != refs[2].First {
			t.Errorf("across %s: %+v, %v", p, e, ok)
		}
	}
}

func TestAcrossSeesALongObjectBehindShortOnes(t *testing.T) {
	store := lake.NewMemory()
	at := func(n uint64) position { return position{Timeline: 1, LSN: 1, Ordinal: n} }
	for _, c := range [][2]uint64{{0, 100}, {10, 11}, {20, 21}} {
		key := lake.KeyParts{Day: 1, First: at(c[0]), Last: at(c[1])}.Key()
		if _, err := store.Put(t.Context(), key, nil, lake.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	d, err := lake.New("memory", store).Day(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := d.Across(at(50)); !ok || e.First != at(0) {
		t.Errorf("%+v, %v", e, ok)
	}
	if _, ok := d.Across(at(101)); ok {
		t.Error("101 lies in no object")
	}
}
