package lake_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/lake/laketest"
)

func TestTheIdentityIsCreatedOnce(t *testing.T) {
	l := lake.New("memory", lake.NewMemory())
	if _, err := l.ReadIdentity(t.Context()); !errors.Is(err, lake.ErrNotFound) {
		t.Fatalf("%v", err)
	}
	id := laketest.Identity()
	id.CreatedAt = time.Now() // with a zone and a monotonic reading
	id.Publications = []string{}
	for range 2 {
		if err := l.CreateIdentity(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	got, err := l.ReadIdentity(t.Context())
	if err != nil || got.Format != lake.FormatVersion || got.Pipeline != id.Pipeline || got.StartLSN != id.StartLSN || !got.CreatedAt.Equal(id.CreatedAt) {
		t.Errorf("%+v, %v", got, err)
	}
	for name, c := range map[string]struct {
		change  func(*lake.Identity)
		foreign bool
		says    string
	}{
		"another pipeline": {func(id *lake.Identity) { id.Pipeline = "billing" }, true, `lake of pipeline "orders"`},
		"another database": {func(id *lake.Identity) { id.SystemID = "42" }, true, "restored copy"},
		"another slot":     {func(id *lake.Identity) { id.StartLSN++ }, false, "started at 0/1000"},
	} {
		other := id
		c.change(&other)
		err := l.CreateIdentity(t.Context(), other)
		if !errors.Is(err, lake.ErrPrecondition) || errors.Is(err, lake.ErrForeign) != c.foreign || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := l.CreateIdentity(t.Context(), lake.Identity{Pipeline: "x"}); err == nil {
		t.Error("half an identity is accepted")
	}
}

func TestOnlyTheLakesOwnPipelineMayUseIt(t *testing.T) {
	id := laketest.Identity()
	if err := id.Check(laketest.Pipeline, laketest.SystemID); err != nil {
		t.Error(err)
	}
	for _, c := range [][2]string{{"other", laketest.SystemID}, {laketest.Pipeline, "1"}} {
		if err := id.Check(c[0], c[1]); !errors.Is(err, lake.ErrForeign) || lake.Class(err).Kind != lake.Conflict {
			t.Errorf("%q: %v", c, err)
		}
	}
}

func TestRecordsThatCannotBeUnderstoodAreErrors(t *testing.T) {
	store := lake.NewMemory()
	l := lake.New("memory", store)
	put := func(key, body string) {
		if _, err := store.Put(t.Context(), key, []byte(body), lake.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, body := range []string{"", "{", `{"format": 2, "pipeline": "x"}`, `{"pipeline": "x"}`} {
		put("_tidemark/pipeline.json", body)
		if id, err := l.ReadIdentity(t.Context()); err == nil {
			t.Errorf("%q is read as %+v", body, id)
		}
	}
	put("_tidemark/ack.json", `{"last": "x"}`)
	if rec, _, err := l.ReadAck(t.Context()); err == nil {
		t.Errorf("read as %+v", rec)
	}
	put("_tidemark/pipeline.json", `{"format": 1, "pipeline": "x", "later": true}`)
	if id, err := l.ReadIdentity(t.Context()); err != nil || id.Pipeline != "x" {
		t.Errorf("a field of a later version: %+v, %v", id, err)
	}
}

func TestTheAckIsReplacedByItsReaderOnly(t *testing.T) {
	l := lake.New("memory", lake.NewMemory())
	if _, _, err := l.ReadAck(t.Context()); !errors.Is(err, lake.ErrNotFound) {
		t.Fatalf("%v", err)
	}
	rec := lake.AckRecord{Last: position{Timeline: 1, LSN: 5, Ordinal: 2}, Ack: 6, Timeline: 1, Writer: "a", Seq: 1, At: time.Now().UTC().Round(0)}
	one, err := l.WriteAck(t.Context(), rec, "")
	if err != nil {
		t.Fatal(err)
	}
	got, tag, err := l.ReadAck(t.Context())
	if err != nil || got != rec || tag != one {
		t.Fatalf("%+v, %v, %v", got, tag, err)
	}
	// A second streamer takes over.
	second := rec
	second.Writer, second.Ack = "b", 7
	if _, err := l.WriteAck(t.Context(), second, one); err != nil {
		t.Fatal(err)
	}
	rec.Seq = 2
	_, err = l.WriteAck(t.Context(), rec, one)
	if !errors.Is(err, lake.ErrPrecondition) || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("the first goes on: %v", err)
	}
	if _, err := l.WriteAck(t.Context(), rec, ""); !errors.Is(err, lake.ErrPrecondition) {
		t.Errorf("the first begins anew: %v", err)
	}
	if got, _, _ := l.ReadAck(t.Context()); got.Writer != "b" {
		t.Errorf("%+v", got)
	}
	if _, err := l.WriteAck(t.Context(), lake.AckRecord{}, ""); err == nil {
		t.Error("a record without a writer is accepted")
	}
}

func TestALostReplyOfAnAckIsSuccess(t *testing.T) {
	lost := errors.New("connection reset")
	fail := false
	store := &laketest.Faulty{Store: lake.NewMemory(), AfterPut: func(string) error {
		if fail {
			return lost
		}
		return nil
	}}
	l := lake.New("memory", store)
	rec := lake.AckRecord{Ack: 6, Timeline: 1, Writer: "a", Seq: 1}
	etag := ""
	for range 3 {
		fail = true
		if _, err := l.WriteAck(t.Context(), rec, etag); !errors.Is(err, lost) {
			t.Fatal(err)
		}
		fail = false
		again, err := l.WriteAck(t.Context(), rec, etag)
		if err != nil {
			t.Fatal(err)
		}
		etag = again
		rec.Seq++
		rec.Ack++
	}
	if got, tag, err := l.ReadAck(t.Context()); err != nil || got.Seq != 3 || tag != etag {
		t.Errorf("%+v, %v, %v", got, tag, err)
	}
}

func TestAnAckThatWasDeletedIsNotMadeAgain(t *testing.T) {
	store := lake.NewMemory()
	l := lake.New("memory", store)
	rec := lake.AckRecord{Ack: 6, Timeline: 1, Writer: "a", Seq: 1}
	etag, err := l.WriteAck(t.Context(), rec, "")
	if err != nil {
		t.Fatal(err)
	}
	store.Delete("_tidemark/ack.json")
	rec.Seq++
	if _, err := l.WriteAck(t.Context(), rec, etag); !errors.Is(err, lake.ErrPrecondition) || !strings.Contains(err.Error(), "deleted") {
		t.Errorf("%v", err)
	}
}

// A life that ended while its write was on the way, and the next one, which read
// the record before that write came through.
func TestAnAckThatWasGivenUpIsNotTakenForAnother(t *testing.T) {
	l := lake.New("s3://b", lake.NewMemory())
	rec := lake.AckRecord{Ack: 6, Timeline: 1, Writer: "a", Seq: 1}
	etag, err := l.WriteAck(t.Context(), rec, "")
	if err != nil {
		t.Fatal(err)
	}
	late, next := rec, rec
	late.Seq, late.Ack = 2, 7
	next.Seq, next.Ack = 2, 9
	if _, err := l.WriteAck(t.Context(), late, etag); err != nil {
		t.Fatal(err)
	}
	if _, err := l.WriteAck(t.Context(), next, etag); !errors.Is(err, lake.ErrPrecondition) {
		t.Errorf("the ack %s counts as recorded, and %s is: %v", next.Ack, late.Ack, err)
	}
}
