package pgoutput

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

func newFramer(messages bool) *Framer {
	return NewFramer(FramerConfig{
		TimelineOf: func(lsn change.LSN) change.Timeline {
			if lsn < 1000 {
				return 1
			}
			return 2
		},
		Messages: messages, MessageTime: func() change.Time { return 77 },
	})
}

// feed frames messages and gives the last frame.
func feed(t testing.TB, f *Framer, messages ...[]byte) Frame {
	t.Helper()
	var last Frame
	for _, m := range messages {
		var err error
		if last, err = f.Frame(1, received, m); err != nil {
			t.Fatal(err)
		}
	}
	return last
}

func TestOrdinalsCountWhatIsFilteredToo(t *testing.T) {
	for _, messages := range []bool{true, false} {
		f := newFramer(messages)
		var got []string
		for _, m := range [][]byte{
			begin(100, 5, 7), relation(1, "a", 'd', twoColumns...), relation(2, "b", 'd', twoColumns...),
			logical(true, 90, "p", "c"),
			row('I', 1).tuple('N', "1", nil),
			logical(true, 91, "p", "c"),
			truncate(1, 2),
			row('I', 2).tuple('N', "1", nil),
			commit(100, 120, 5),
			begin(120, 6, 8), row('I', 2).tuple('N', "2", nil), commit(120, 130, 6),
		} {
			for _, c := range feed(t, f, m).Changes {
				if c.Operation != change.Message {
					got = append(got, fmt.Sprint(c.Position, " ", c.Operation, " ", c.Joined))
				}
			}
		}
		want := []string{
			"00000001-0000000000000064-0000000001 insert false",
			"00000001-0000000000000064-0000000003 truncate true",
			"00000001-0000000000000064-0000000004 truncate false",
			"00000001-0000000000000064-0000000005 insert false",
			"00000001-0000000000000078-0000000000 insert false",
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("with Messages %v:\n%s", messages, strings.Join(got, "\n"))
		}
	}
}

func TestAChangeCarriesItsTransaction(t *testing.T) {
	f := newFramer(true)
	feed(t, f, begin(5000, 1, 7), relation(1, "a", 'd', twoColumns...))
	raw := []byte(row('I', 1).tuple('N', "1", nil))
	frame, err := f.Frame(4990, received, raw)
	if err != nil || frame.Kind != Changes || len(frame.Changes) != 1 {
		t.Fatalf("frame %v, error %v", frame, err)
	}
	c := frame.Changes[0]
	if c.Position != (change.Position{Timeline: 2, LSN: 5000}) || c.LSN != 4990 || c.XID != 7 ||
		c.CommitTime != change.FromPostgres(1) || c.Received != received || c.Relation.Name != "a" || &c.Raw[0] != &raw[0] {
		t.Errorf("change is %+v", c)
	}
	if !f.InTransaction() {
		t.Error("not in a transaction before its commit")
	}
	frame = feed(t, f, commit(5000, 5040, 1))
	if frame.Kind != Commit || frame.CommitEnd != 5040 || len(frame.Changes) != 0 || f.InTransaction() {
		t.Errorf("commit gives %v, in transaction: %v", frame, f.InTransaction())
	}
}

func TestAnEmptyTransactionHasNoChanges(t *testing.T) {
	f := newFramer(true)
	if b, c := feed(t, f, begin(100, 1, 7)), feed(t, f, commit(100, 140, 1)); b.Kind != Begin || c.Kind != Commit || c.CommitEnd != 140 {
		t.Errorf("frames are %v and %v", b, c)
	}
}

func TestANonTransactionalMessageStandsBeforeItsLSN(t *testing.T) {
	f := newFramer(true)
	// Its record ends where the next one begins, here a commit record on
	// another timeline.
	c := feed(t, f, logical(false, 1000, "p", "c")).Changes[0]
	if c.Position != (change.Position{Timeline: 1, LSN: 999}) || c.XID != 0 || c.CommitTime != 77 || c.Relation != nil {
		t.Errorf("change is %+v", c)
	}
	if frame := feed(t, newFramer(false), logical(false, 1000, "p", "c")); frame.Kind != None {
		t.Errorf("filtered, it gives %v", frame)
	}
}

func TestWhatIsOutOfOrderOrCutShortIsMalformed(t *testing.T) {
	rel := relation(1, "a", 'd', twoColumns...)
	insert := []byte(row('I', 1).tuple('N', "1", nil))
	for _, c := range []struct {
		name   string
		before [][]byte
		msg    []byte
		says   string
	}{
		{"empty", nil, nil, "empty"},
		{"unknown type", nil, []byte("x"), "unknown type"},
		{"stream start", nil, []byte("S\x00\x00\x00\x01\x01"), "streamed or prepared"},
		{"begin prepare", nil, []byte("b"), "streamed or prepared"},
		{"begin in a transaction", [][]byte{begin(1, 1, 1)}, begin(2, 1, 2), "inside transaction 1"},
		{"commit outside", nil, commit(1, 2, 1), "outside of a transaction"},
		{"commit of another", [][]byte{begin(1, 1, 1)}, commit(2, 3, 1), "whose begin announced 0/1"},
		{"commit at another time", [][]byte{begin(1, 1, 1)}, commit(1, 3, 2), "another commit time"},
		{"commit that ends before it begins", [][]byte{begin(5, 1, 1)}, commit(5, 5, 1), "before it begins"},
		{"insert outside", [][]byte{rel}, insert, "outside of a transaction"},
		{"truncate outside", [][]byte{rel}, truncate(1), "outside of a transaction"},
		{"insert of an unknown table", [][]byte{begin(1, 1, 1)}, insert, "table 1, which was not announced"},
		{"truncate of an unknown table", [][]byte{begin(1, 1, 1), rel}, truncate(1, 2), "table 2, which was not announced"},
		{"truncate of nothing", [][]byte{begin(1, 1, 1)}, truncate(), "truncate of 0 tables"},
		{"truncate cut short", [][]byte{begin(1, 1, 1), rel}, truncate(1, 1)[:10], "truncate of 2 tables"},
		{"insert with an old image", [][]byte{begin(1, 1, 1), rel}, row('I', 1).tuple('O', "1", nil), "tuple of kind"},
		{"delete with a new image", [][]byte{begin(1, 1, 1), rel}, row('D', 1).tuple('N', "1", nil), "tuple of kind"},
		{"insert cut short", [][]byte{begin(1, 1, 1), rel}, insert[:5], "cut short"},
		{"begin cut short", nil, begin(1, 1, 1)[:20], "wrong length"},
		{"commit cut short", [][]byte{begin(1, 1, 1)}, commit(1, 2, 1)[:25], "wrong length"},
		{"relation cut short", nil, rel[:len(rel)-1], "wrong length"},
		{"relation with more columns than bytes", nil, builder{'R'}.uint32(1).text("").text("t").byte('d').uint16(65535), "wrong length"},
		{"relation of an unknown identity", nil, relation(1, "a", 'x'), "replica identity"},
		{"message cut short", nil, logical(false, 1, "p", "content")[:14], "wrong length"},
		{"message with unknown flags", nil, append([]byte("M\x02"), logical(false, 1, "p", "")[2:]...), "unknown flags"},
		{"transactional message outside", nil, logical(true, 1, "p", ""), "outside of a transaction"},
		{"non-transactional message inside", [][]byte{begin(1, 1, 1)}, logical(false, 1, "p", ""), "inside transaction 1"},
		{"origin outside", nil, builder{'O'}.uint64(1).text("name"), "outside of a transaction"},
		{"origin without its end", [][]byte{begin(1, 1, 1)}, []byte("O\x00\x00\x00\x00\x00\x00\x00\x01name"), "wrong length"},
		{"type cut short", nil, []byte("Y\x00\x00"), "wrong length"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFramer(true)
			feed(t, f, c.before...)
			frame, err := f.Frame(0xABC, received, c.msg)
			if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "WAL 0/ABC") {
				t.Errorf("error is %v, want ErrMalformed that names 0/ABC and says %q", err, c.says)
			}
			if frame.Kind != None || frame.Changes != nil {
				t.Errorf("frame is %v beside an error", frame)
			}
		})
	}
}

func TestTypeMessagesMeanNothing(t *testing.T) {
	f := newFramer(true)
	if frame := feed(t, f, builder{'Y'}.uint32(70000).text("public").text("mood")); frame.Kind != None {
		t.Errorf("a type message gives %v", frame)
	}
}

func TestTransactionsFromElsewhereAreDroppedAndTakeTheirOrdinals(t *testing.T) {
	origin := builder{'O'}.uint64(5).text("other")
	insert := []byte(row('I', 1).tuple('N', "1", nil))
	for name, localOnly := range map[string]bool{"origin any": false, "origin none": true} {
		t.Run(name, func(t *testing.T) {
			f := NewFramer(FramerConfig{
				TimelineOf: func(change.LSN) change.Timeline { return 1 },
				LocalOnly:  localOnly, Messages: true,
			})
			feed(t, f, relation(1, "a", 'd', twoColumns...), begin(10, 1, 1), origin)
			frame := feed(t, f, insert)
			if got := len(frame.Changes); (got == 0) != localOnly || (frame.Kind == None) != localOnly {
				t.Errorf("a row from elsewhere gives %v with %d changes", frame.Kind, got)
			}
			if f.next.Ordinal != 1 {
				t.Errorf("the next ordinal is %d, want 1", f.next.Ordinal)
			}
			if end := feed(t, f, commit(10, 11, 1)); end.Kind != Commit {
				t.Errorf("its commit gives %v, want a commit, so that the ack moves on", end.Kind)
			}
			feed(t, f, begin(20, 1, 2))
			if frame := feed(t, f, insert); len(frame.Changes) != 1 {
				t.Error("a local row after it is gone")
			}
		})
	}
}

// A composite may have been altered since its facts were read, which nothing in
// the stream says: they are read again whenever the table is announced.
func TestAVersionIsDescribedAgainIfItHasAComposite(t *testing.T) {
	fields := []change.Column{{Name: "a", Type: oidInt4}}
	calls := 0
	var fail error
	f := NewFramer(FramerConfig{
		TimelineOf: func(change.LSN) change.Timeline { return 1 },
		Describe: func(r *change.Relation) error {
			if calls++; fail != nil {
				return fail
			}
			r.Types = []change.Type{{OID: 70000, Kind: change.KindComposite, Fields: fields}}
			return nil
		},
	})
	msg, insert := relation(1, "a", 'd', change.Column{Name: "c", Type: 70000}), []byte(row('I', 1).tuple('N', "(1,2)"))
	images := func(msgs ...[]byte) string {
		_, after, _, err := decode(NewDecoder(), &feed(t, f, msgs...).Changes[0])
		if err != nil {
			t.Fatal(err)
		}
		return string(after)
	}
	if got := images(begin(10, 1, 1), msg, insert); got != `{"c":"(1,2)"}` {
		t.Errorf("with facts from before: %s", got)
	}
	fields = append(fields, change.Column{Name: "b", Type: oidInt4})
	if got := images(insert); got != `{"c":"(1,2)"}` {
		t.Errorf("facts of a relation in use changed: %s", got)
	}
	fail = errors.New("server is away")
	if _, err := f.Frame(1, received, msg); !errors.Is(err, fail) {
		t.Errorf("error is %v, want that of Describe", err)
	}
	fail = nil
	if got := images(msg, insert); got != `{"c":{"a":1,"b":2}}` {
		t.Errorf("announced again: %s", got)
	}
	f.Reset()
	images(begin(10, 1, 1), msg, insert)
	if calls != 4 {
		t.Errorf("described %d times, want once per announcement and once more for the error", calls)
	}
}

// What was dropped may have changed rows, so a decoder must see that.
func TestADroppedChangeMakesTheRelationAnotherValue(t *testing.T) {
	f := NewFramer(FramerConfig{TimelineOf: func(change.LSN) change.Timeline { return 1 }, LocalOnly: true})
	insert := []byte(row('I', 1).tuple('N', "1", nil))
	origin := builder{'O'}.uint64(1).text("elsewhere")
	first := feed(t, f, relation(1, "a", 'd', twoColumns...), relation(2, "b", 'd', twoColumns...), begin(10, 1, 1), insert).Changes[0].Relation
	other := feed(t, f, []byte(row('I', 2).tuple('N', "1", nil))).Changes[0].Relation
	feed(t, f, commit(10, 11, 1), begin(20, 1, 2), origin, insert, insert, commit(20, 21, 1), begin(30, 1, 3))
	second := feed(t, f, insert).Changes[0].Relation
	third := feed(t, f, insert).Changes[0].Relation
	if first == second || second != third || first.Hash != second.Hash {
		t.Errorf("relations are %p %p %p", first, second, third)
	}
	if same := feed(t, f, []byte(row('I', 2).tuple('N', "1", nil))).Changes[0].Relation; same != other {
		t.Error("so is that of a table of which nothing was dropped")
	}
}

func TestNamesThatAreNotUTF8AreSpelledOut(t *testing.T) {
	f := newFramer(false)
	feed(t, f, builder{'R'}.uint32(1).text("sch\xe9ma").text("é\xff\xfe").byte('d').uint16(1).byte(0).text("\x80").uint32(25).uint32(0))
	r := f.relations.announced(1)
	if got := r.Namespace + " " + r.Name + " " + r.Columns[0].Name; got != `sch\xe9ma é\xff\xfe \x80` {
		t.Errorf("names are %q", got)
	}
}

func TestAVersionIsDescribedOnce(t *testing.T) {
	var described []string
	fail := errors.New("server is away")
	var err error
	f := NewFramer(FramerConfig{
		TimelineOf: func(change.LSN) change.Timeline { return 1 },
		Describe: func(r *change.Relation) error {
			if err == nil {
				described = append(described, r.Name)
			}
			return err
		},
	})
	old, renamed := relation(1, "a", 'd', twoColumns...), relation(1, "b", 'd', change.Column{Name: "w", Type: 25})
	insert := []byte(row('I', 1).tuple('N', "1", nil))

	err = fail
	if _, got := f.Frame(1, received, old); !errors.Is(got, fail) || errors.Is(got, ErrMalformed) {
		t.Fatalf("error is %v, want that of Describe", got)
	}
	err = nil
	feed(t, f, old, begin(10, 1, 1))
	first := feed(t, f, insert).Changes[0].Relation
	second := feed(t, f, renamed, insert).Changes[0].Relation
	third := feed(t, f, old, insert).Changes[0].Relation
	f.Reset()
	feed(t, f, begin(10, 1, 1))
	if _, err := f.Frame(1, received, insert); err == nil || !strings.Contains(err.Error(), "which was not announced") {
		t.Errorf("a table that was not announced on this connection gives error %v", err)
	}
	fourth := feed(t, f, old, insert).Changes[0].Relation
	if first == third || first == fourth || third == fourth {
		t.Errorf("announcements are not told apart: %p %p %p", first, third, fourth)
	}
	if first.Hash == second.Hash || first.Hash != third.Hash || first.Hash != fourth.Hash {
		t.Errorf("versions are %x %x %x %x", first.Hash, second.Hash, third.Hash, fourth.Hash)
	}
	if got := strings.Join(described, " "); got != "a b" {
		t.Errorf("described %s, want a b", got)
	}
}

func TestTheRelationCacheIsBounded(t *testing.T) {
	f := newFramer(false)
	for i := range 10 * spareVersions {
		feed(t, f, relation(1, "a", 'd', change.Column{Name: fmt.Sprint("name", i), Type: 25}))
	}
	if n := len(f.relations.versions); n > spareVersions+2 {
		t.Errorf("%d versions of one table are kept", n)
	}
}

func TestRelationsInPgCatalogComeWithoutTheirNamespace(t *testing.T) {
	f := newFramer(false)
	feed(t, f, builder{'R'}.uint32(1).text("").text("t").byte('d').uint16(0))
	if ns := f.relations.announced(1).Namespace; ns != "pg_catalog" {
		t.Errorf("namespace is %q", ns)
	}
}

func TestFramingAllocatesNothingPerChange(t *testing.T) {
	for _, c := range []struct {
		name string
		msg  []byte
	}{
		{"insert", row('I', 1).tuple('N', "1", strings.Repeat("x", 10_000))},
		{"update", row('U', 1).tuple('O', "1", "a").tuple('N', "1", toasted{})},
		{"delete", row('D', 1).tuple('K', "1", nil)},
		{"truncate", truncate(1, 1, 1)},
		{"message", logical(true, 1, "prefix", "content")},
	} {
		f := newFramer(true)
		feed(t, f, relation(1, "a", 'd', twoColumns...), begin(1, 1, 1), c.msg)
		if n := testing.AllocsPerRun(1000, func() { f.Frame(1, received, c.msg) }); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}
