package lake_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/lake/laketest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// testLake is a whole lake of eight segments on three days, all acknowledged,
// and what damages it.
type testLake struct {
	t     *testing.T
	store *lake.Memory
	l     *lake.Lake
	refs  []segment.Ref
}

func wholeLake(t *testing.T) *testLake {
	t.Helper()
	store := lake.NewMemory()
	x := &testLake{t: t, store: store, l: lake.New("memory", store), refs: laketest.Chain("memory", 8, 3)}
	if err := laketest.Fill(t.Context(), x.l, x.refs); err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *testLake) key(i int) string { return lake.Key(x.refs[i]) }
func (x *testLake) delete(i int)     { x.store.Delete(x.key(i)) }

// put stores body whatever is there.
func (x *testLake) put(key string, body []byte) {
	x.t.Helper()
	if _, err := x.store.Put(x.t.Context(), key, body, lake.Condition{}); err != nil {
		x.t.Fatal(err)
	}
}

// add stores one more segment: number i, changed.
func (x *testLake) add(i int, change func(*segment.Ref)) string {
	x.t.Helper()
	ref := x.refs[i]
	change(&ref)
	x.put(lake.Key(ref), object(x.t, ref))
	return lake.Key(ref)
}

// ack acknowledges up to the end of segment i.
func (x *testLake) ack(last position) {
	body, err := json.Marshal(lake.AckRecord{Last: last, Ack: last.LSN + 1, Timeline: 1, Writer: "x"})
	if err != nil {
		x.t.Fatal(err)
	}
	x.put("_tidemark/ack.json", body)
}

func (x *testLake) verify() lake.Report {
	x.t.Helper()
	r, err := lake.Verify(x.t.Context(), x.l, lake.Options{Concurrency: 3})
	if err != nil {
		x.t.Fatal(err)
	}
	return r
}

func TestVerifyTellsOfEveryObjectThatItHasRead(t *testing.T) {
	x := wholeLake(t)
	var told []lake.Progress
	r, err := lake.Verify(t.Context(), x.l, lake.Options{Concurrency: 3, Progress: func(p lake.Progress) { told = append(told, p) }})
	if err != nil {
		t.Fatal(err)
	}
	if len(told) != 8 || r.Objects != 8 {
		t.Fatalf("told %d times of %d objects", len(told), r.Objects)
	}
	for i, p := range told {
		if p.Objects != int64(i+1) || p.Bytes <= 0 || p.Days < 1 || i > 0 && p.Bytes <= told[i-1].Bytes {
			t.Errorf("the %d-th time it is %+v", i+1, p)
		}
	}
	if last := told[7]; last.Bytes != r.Bytes || last.Days != 3 {
		t.Errorf("in the end %+v, and the report has %d bytes of %d days", last, r.Bytes, len(r.Days))
	}
}

func TestAWholeLakeIsWell(t *testing.T) {
	x := wholeLake(t)
	r := x.verify()
	if !r.OK() || len(r.Findings) != 0 {
		t.Fatalf("%+v", r.Findings)
	}
	var days []string
	for _, d := range r.Days {
		days = append(days, fmt.Sprintf("%s: %d rows in %d", d.Day, d.Rows, d.Objects))
	}
	if want := []string{"2024-05-01: 6 rows in 3", "2024-05-02: 6 rows in 3", "2024-05-03: 3 rows in 2"}; !slices.Equal(days, want) {
		t.Errorf("got %q", days)
	}
	if r.Objects != 8 || r.Rows != 15 || r.Bytes == 0 || r.Identity.Pipeline != laketest.Pipeline || r.Ack.Last != x.refs[7].Last {
		t.Errorf("%+v", r)
	}
	want := lake.Chain{Pipeline: laketest.Pipeline, SystemID: laketest.SystemID, Objects: 8, Rows: 15, First: x.refs[0].First, Last: x.refs[7].Last}
	if len(r.Chains) != 1 || r.Chains[0] != want {
		t.Errorf("%+v", r.Chains)
	}
}

func TestALakeThatWasJustSetUpIsWell(t *testing.T) {
	l := lake.New("memory", lake.NewMemory())
	if err := laketest.Fill(t.Context(), l, nil); err != nil {
		t.Fatal(err)
	}
	if r, err := lake.Verify(t.Context(), l, lake.Options{}); err != nil || !r.OK() {
		t.Errorf("%+v, %v", r.Findings, err)
	}
	l = lake.New("memory", lake.NewMemory())
	if err := l.CreateIdentity(t.Context(), laketest.Identity()); err != nil {
		t.Fatal(err)
	}
	if r, err := lake.Verify(t.Context(), l, lake.Options{}); err != nil || !r.OK() {
		t.Errorf("without an ack: %+v, %v", r.Findings, err)
	}
}

func TestEachDamageIsReportedAsItIs(t *testing.T) {
	type finding struct {
		kind lake.Kind
		key  func(x *testLake) string
	}
	at := func(i int) func(*testLake) string { return func(x *testLake) string { return x.key(i) } }
	named := func(key string) func(*testLake) string { return func(*testLake) string { return key } }
	ack, identity := named("_tidemark/ack.json"), named("_tidemark/pipeline.json")
	inside := func(i int) position { p := laketest.Chain("", 8, 3)[i].First; p.Ordinal++; return p }

	for name, c := range map[string]struct {
		damage func(x *testLake)
		want   []finding
	}{
		"one deleted":   {func(x *testLake) { x.delete(4) }, []finding{{lake.KindGap, at(5)}}},
		"two in a row":  {func(x *testLake) { x.delete(3); x.delete(4) }, []finding{{lake.KindGap, at(5)}}},
		"two apart":     {func(x *testLake) { x.delete(2); x.delete(4) }, []finding{{lake.KindGap, at(3)}, {lake.KindGap, at(5)}}},
		"the first":     {func(x *testLake) { x.delete(0) }, []finding{{lake.KindHead, at(1)}}},
		"the last":      {func(x *testLake) { x.delete(7) }, []finding{{lake.KindTail, ack}}},
		"all":           {func(x *testLake) { deleteAll(x) }, []finding{{lake.KindTail, ack}}},
		"the ack":       {func(x *testLake) { x.store.Delete("_tidemark/ack.json") }, []finding{{lake.KindTail, ack}}},
		"the identity":  {func(x *testLake) { x.store.Delete("_tidemark/pipeline.json") }, []finding{{lake.KindIdentity, identity}}},
		"an ack beyond": {func(x *testLake) { x.ack(position{Timeline: 1, LSN: 0xFFFF}) }, []finding{{lake.KindTail, ack}}},
		"an ack in between": {func(x *testLake) {
			x.ack(inside(4))
			x.delete(4)
			x.add(4, func(r *segment.Ref) { r.Last.Ordinal += 5 })
		}, []finding{{lake.KindTail, ack}, {lake.KindOverlap, func(x *testLake) string { r := x.refs[4]; r.Last.Ordinal += 5; return lake.Key(r) }}}},
		"a stranger":    {func(x *testLake) { x.put("notes.txt", []byte("hi")) }, []finding{{lake.KindForeign, named("notes.txt")}}},
		"a folder mark": {func(x *testLake) { x.put("_tidemark/x.json", nil) }, []finding{{lake.KindForeign, named("_tidemark/x.json")}}},
		"another pipeline's": {func(x *testLake) {
			x.add(7, func(r *segment.Ref) { r.First.LSN++; r.Last.LSN++; r.Pipeline = "other" })
		}, []finding{{lake.KindForeign, func(x *testLake) string { return lake.Key(shifted(x.refs[7], 1)) }}}},
		"another database's": {func(x *testLake) { x.add(3, func(r *segment.Ref) { r.SystemID = "2" }) }, []finding{{lake.KindForeign, at(3)}, {lake.KindGap, at(4)}}},
		"rubbish":            {func(x *testLake) { x.put(x.key(3), []byte("rubbish")) }, []finding{{lake.KindUnreadable, at(3)}}},
		"an empty object":    {func(x *testLake) { x.put(x.key(7), nil) }, []finding{{lake.KindUnreadable, at(7)}}},
		"another's content":  {func(x *testLake) { x.put(x.key(3), object(x.t, x.refs[5])) }, []finding{{lake.KindMismatch, at(3)}}},
		"other rows in quarantine": {func(x *testLake) {
			x.put(lake.QuarantineKey(x.refs[3]), object(x.t, otherRows(x.refs[3])))
		}, []finding{{lake.KindDuplicate, func(x *testLake) string { return lake.QuarantineKey(x.refs[3]) }}}},
		"an overlap": {func(x *testLake) { x.add(5, func(r *segment.Ref) { r.First.Ordinal++; r.Follows.Ordinal++ }) },
			[]finding{{lake.KindOverlap, func(x *testLake) string { r := x.refs[5]; r.First.Ordinal++; return lake.Key(r) }}}},
		"two from one start": {func(x *testLake) { x.add(5, func(r *segment.Ref) { r.Last.Ordinal-- }) },
			[]finding{{lake.KindOverlap, func(x *testLake) string { r := x.refs[5]; r.Last.Ordinal--; return lake.Key(r) }}}},
		"an intruder": {func(x *testLake) {
			x.add(4, func(r *segment.Ref) { *r = shifted(*r, 0x10); r.Follows = x.refs[4].Last })
		},
			[]finding{{lake.KindOverlap, func(x *testLake) string { return lake.Key(shifted(x.refs[4], 0x10)) }}}},
		"before the start": {func(x *testLake) {
			x.add(0, func(r *segment.Ref) { r.First.LSN, r.Last.LSN, r.Follows.LSN = 0x10, 0x10, 0x1 })
		}, []finding{{lake.KindHead, func(x *testLake) string { r := x.refs[0]; r.First.LSN, r.Last.LSN = 0x10, 0x10; return lake.Key(r) }}}},
		"a damaged gap record": {func(x *testLake) { x.put("_tidemark/gaps/x.json", nil) }, []finding{{lake.KindUnreadable, named("_tidemark/gaps/x.json")}}},
	} {
		t.Run(name, func(t *testing.T) {
			x := wholeLake(t)
			c.damage(x)
			r := x.verify()
			var got, want []string
			for _, f := range r.Findings {
				got = append(got, string(f.Kind)+" "+f.Key)
				if f.Text == "" {
					t.Errorf("a finding without a text: %+v", f)
				}
			}
			for _, f := range c.want {
				want = append(want, string(f.kind)+" "+f.key(x))
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("\n got %q\nwant %q", got, want)
			}
			if r.OK() {
				t.Error("it counts as well")
			}
		})
	}
}

func shifted(ref segment.Ref, by change.LSN) segment.Ref {
	ref.First.LSN += by
	ref.Last.LSN += by
	return ref
}

func deleteAll(x *testLake) {
	for i := range x.refs {
		x.delete(i)
	}
}

func TestAGapSaysWhichChangesAreMissing(t *testing.T) {
	x := wholeLake(t)
	x.delete(3)
	x.delete(4)
	f := x.verify().Findings[0]
	if f.After != x.refs[2].Last || f.Through != x.refs[4].Last {
		t.Errorf("%+v", f)
	}
	x = wholeLake(t)
	x.delete(6)
	x.delete(7)
	f = x.verify().Findings[0]
	if f.Kind != lake.KindTail || f.After != x.refs[5].Last || f.Through != x.refs[7].Last {
		t.Errorf("%+v", f)
	}
}

func TestQuarantineAndRecordedGapsAreLinks(t *testing.T) {
	x := wholeLake(t)
	x.delete(3)
	x.put(lake.QuarantineKey(x.refs[3]), object(t, x.refs[3]))
	for i := 5; i < 7; i++ {
		x.delete(i)
	}
	gap := lake.Gap{Pipeline: laketest.Pipeline, SystemID: laketest.SystemID, Follows: x.refs[4].Last, Last: x.refs[6].Last, Reason: "the slot was dropped"}
	if err := x.l.RecordGap(t.Context(), gap); err != nil {
		t.Fatal(err)
	}
	r := x.verify()
	if !r.OK() || r.Chains[0].Gaps != 1 || r.Days[1].Quarantined != 1 || r.Days[1].QuarantinedRows != x.refs[3].Rows {
		t.Errorf("%+v", r)
	}
	if len(r.Gaps) != 1 || r.Gaps[0] != gap || r.Missing() != 1 {
		t.Errorf("%+v", r.Gaps)
	}
	if err := x.l.RecordGap(t.Context(), gap); err != nil {
		t.Errorf("recorded twice: %v", err)
	}
	// Rows that were given up come into the lake after all, at either end.
	for i := 5; i < 7; i++ {
		x.put(lake.Key(x.refs[i]), object(t, x.refs[i]))
		if r := x.verify(); !r.OK() || r.WithinGaps != int64(i-4) {
			t.Errorf("%d objects in a recorded gap: %+v", i-4, r)
		}
	}
	// Two, the second after the first, begin where the gap does.
	var keys []string
	for n, follows := uint64(1), x.refs[4].Last; n <= 2; n++ {
		keys = append(keys, x.add(5, func(r *segment.Ref) {
			r.First, r.Follows = x.refs[4].Last, follows
			r.First.Ordinal += n
			r.Last, follows = r.First, r.First
		}))
	}
	if r := x.verify(); !r.OK() || r.WithinGaps != 4 {
		t.Errorf("objects that begin with a recorded gap: %+v", r)
	}
	for _, key := range keys {
		x.store.Delete(key)
	}
	x.add(6, func(r *segment.Ref) { r.Last = x.refs[7].First })
	if r := x.verify(); r.Counts[lake.KindOverlap] != 1 {
		t.Errorf("an object that reaches beyond a recorded gap: %+v", r.Findings)
	}
}

func TestAGapThatFollowsTheStartIsALinkToo(t *testing.T) {
	x := wholeLake(t)
	x.delete(0)
	gap := lake.Gap{Pipeline: laketest.Pipeline, SystemID: laketest.SystemID, Follows: laketest.Identity().Head(), Last: x.refs[0].Last}
	if err := x.l.RecordGap(t.Context(), gap); err != nil {
		t.Fatal(err)
	}
	if r := x.verify(); !r.OK() {
		t.Errorf("%+v", r.Findings)
	}
}

// Segments finish in any order, and are acknowledged in order.
func TestWhatIsNotAcknowledgedIsInFlight(t *testing.T) {
	x := wholeLake(t)
	x.ack(x.refs[3].Last)
	x.delete(4)
	x.delete(6)
	r := x.verify()
	if !r.OK() || r.Chains[0].InFlight != 2 || r.Chains[0].Islands != 2 {
		t.Errorf("%+v, %+v", r.Chains, r.Findings)
	}
	// A hole that reaches back before the ack is a gap up to there.
	x.ack(x.refs[4].Last)
	x.delete(5)
	r = x.verify()
	if len(r.Findings) != 1 || r.Findings[0].Kind != lake.KindGap || r.Findings[0].Through != x.refs[4].Last {
		t.Errorf("%+v", r.Findings)
	}
	// Nothing acknowledged: only that is said.
	x = wholeLake(t)
	x.ack(laketest.Identity().Head())
	x.delete(0)
	r = x.verify()
	if !r.OK() || r.Chains[0].InFlight != 7 || r.Chains[0].Islands != 1 {
		t.Errorf("%+v, %+v", r.Chains, r.Findings)
	}
}

// growing lets the lake go on while it is listed.
type growing struct {
	lake.Store
	during func(listed int)
}

func (g *growing) List(ctx context.Context, prefix, after string) iter.Seq2[lake.Info, error] {
	return func(yield func(lake.Info, error) bool) {
		n := 0
		for info, err := range g.Store.List(ctx, prefix, after) {
			n++
			g.during(n)
			if !yield(info, err) {
				return
			}
		}
	}
}

func TestALakeThatGrowsWhileItIsListedIsWell(t *testing.T) {
	x := wholeLake(t)
	x.delete(6)
	x.delete(7)
	x.ack(x.refs[5].Last)
	l := lake.New("memory", &growing{Store: x.store, during: func(n int) {
		if n == 3 {
			// Stored and acknowledged after the listing has begun.
			x.put(x.key(6), object(t, x.refs[6]))
			x.put(x.key(7), object(t, x.refs[7]))
			x.ack(x.refs[7].Last)
		}
	}})
	r, err := lake.Verify(t.Context(), l, lake.Options{})
	if err != nil || !r.OK() {
		t.Errorf("%+v, %v", r.Findings, err)
	}
}

func TestWithoutAnIdentityEachPipelineIsAChain(t *testing.T) {
	x := wholeLake(t)
	for i := range 4 {
		x.add(i, func(r *segment.Ref) {
			*r = shifted(*r, 0x10000)
			r.Follows.LSN += 0x10000
			r.Pipeline = "billing"
		})
	}
	x.store.Delete("_tidemark/pipeline.json")
	x.delete(2)
	r := x.verify()
	if len(r.Chains) != 2 || r.Chains[0].Pipeline != "billing" || r.Chains[0].Objects != 4 || r.Chains[1].Objects != 7 {
		t.Errorf("%+v", r.Chains)
	}
	if r.Counts[lake.KindIdentity] != 1 || r.Counts[lake.KindGap]+r.Counts[lake.KindHead] > 1 {
		t.Errorf("%+v", r.Findings)
	}
}

func TestThereAreNoMoreFindingsThanAskedForAndAllAreCounted(t *testing.T) {
	x := wholeLake(t)
	for i := range 50 {
		x.put(fmt.Sprintf("x/%d", i), nil)
	}
	r, err := lake.Verify(t.Context(), x.l, lake.Options{MaxFindings: 7})
	if err != nil || len(r.Findings) != 7 || r.Counts[lake.KindForeign] != 50 || r.OK() {
		t.Errorf("%d findings, %v, %v", len(r.Findings), r.Counts, err)
	}
	var text strings.Builder
	if err := r.WriteText(&text); err != nil || !strings.Contains(text.String(), "43 more") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

func TestAStoreThatFailsForAWhileDoesNotStopVerify(t *testing.T) {
	x := wholeLake(t)
	var n atomic.Int64
	store := &laketest.Faulty{Store: x.store, BeforeRead: func(key string) error {
		if n.Add(1)%3 == 0 {
			return &lake.Error{Op: "read", Object: key, Kind: lake.Throttled, RetryAfter: time.Millisecond, Err: errors.New("slow down")}
		}
		return nil
	}}
	r, err := lake.Verify(t.Context(), lake.New("memory", store), lake.Options{})
	if err != nil || !r.OK() {
		t.Errorf("%+v, %v", r.Findings, err)
	}
}

// breaking lets every listing fail after two more objects.
type breaking struct {
	lake.Store
	listings int
}

func (b *breaking) List(ctx context.Context, prefix, after string) iter.Seq2[lake.Info, error] {
	return func(yield func(lake.Info, error) bool) {
		b.listings++
		n := 0
		for info, err := range b.Store.List(ctx, prefix, after) {
			if n++; n > 2 {
				yield(lake.Info{}, &lake.Error{Op: "list", Object: prefix, Kind: lake.Unreachable, Err: errors.New("connection reset")})
				return
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

func TestAListingThatBreaksGoesOnWhereItWas(t *testing.T) {
	x := wholeLake(t)
	for i := 4; i < 8; i++ {
		x.delete(i)
	}
	x.ack(x.refs[3].Last)
	// The quarantine, which is empty; then four objects and two records, two at a time.
	store := &breaking{Store: x.store}
	r, err := lake.Verify(t.Context(), lake.New("memory", store), lake.Options{})
	if err != nil || !r.OK() || r.Objects != 4 || store.listings != 4 {
		t.Errorf("%d objects in %d listings, %+v, %v", r.Objects, store.listings, r.Findings, err)
	}
}

func TestAStoreThatRefusesIsAnErrorAndNoFinding(t *testing.T) {
	x := wholeLake(t)
	store := &laketest.Faulty{Store: x.store, BeforeRead: func(key string) error {
		if strings.HasSuffix(key, ".parquet") {
			return &lake.Error{Op: "read", Object: key, Kind: lake.Denied, Err: errors.New("no")}
		}
		return nil
	}}
	_, err := lake.Verify(t.Context(), lake.New("memory", store), lake.Options{})
	if lake.Class(err).Kind != lake.Denied {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lake.Verify(ctx, x.l, lake.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestTheReportIsJSONAndText(t *testing.T) {
	x := wholeLake(t)
	x.delete(4)
	x.ack(x.refs[6].Last)
	x.put("notes.txt", nil)
	r := x.verify()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back lake.Report
	if err := json.Unmarshal(b, &back); err != nil || len(back.Findings) != 2 || !maps.Equal(back.Counts, r.Counts) || back.Days[0] != r.Days[0] || back.Chains[0] != r.Chains[0] {
		t.Errorf("%v: %s", err, b)
	}
	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	const want = `Lake      memory
Pipeline  orders, Postgres system 7301234567890123456, from 0/1000 on timeline 1
Ack       0/1601, last position 00000001-0000000000001600-0000000000, written 0001-01-01T00:00:00Z
Chain     orders: 13 rows in 7 objects, from 00000001-0000000000001000-0000000000 to 00000001-0000000000001700-0000000001
          1 object in flight: stored and not acknowledged yet

`
	if got := text.String(); !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s", got)
	}
	for _, line := range []string{
		"2024-05-02     4        2", "Total    13        7", "\ngap        2024/05/02/", "\nforeign    notes.txt is not an object", "\nNot well: 2 findings.\n",
	} {
		if !strings.Contains(text.String(), line) {
			t.Errorf("no %q in\n%s", line, text.String())
		}
	}
}

// Drops and duplicates are found, each where it is, and nothing else is.
func TestVerifyFindsExactlyWhatWasDone(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 25).Draw(rt, "segments")
		acked := rapid.IntRange(0, n).Draw(rt, "acked")
		x := &testLake{t: t, store: lake.NewMemory(), refs: laketest.Chain("memory", n, rapid.IntRange(1, 10).Draw(rt, "per day"))}
		x.l = lake.New("memory", x.store)
		if err := x.l.CreateIdentity(t.Context(), laketest.Identity()); err != nil {
			rt.Fatal(err)
		}
		end := laketest.Identity().Head()
		if acked > 0 {
			end = x.refs[acked-1].Last
		}
		x.ack(end)
		fates := rapid.SliceOfN(rapid.SampledFrom([]string{"kept", "kept", "kept", "dropped", "doubled", "replayed", "quarantined", "unreadable"}), n, n).Draw(rt, "fates")

		want := map[string]bool{}
		say := func(kind lake.Kind, key string) { want[string(kind)+" "+key] = true }
		missing, any := false, false // of the changes right before segment i
		for i, fate := range fates {
			ref := x.refs[i]
			key := lake.Key(ref)
			if fate == "dropped" {
				missing = missing || i < acked
				continue
			}
			if fate != "quarantined" {
				x.put(key, object(t, ref))
			} else {
				key = lake.QuarantineKey(ref)
				x.put(key, object(t, ref))
			}
			switch fate {
			case "doubled":
				x.put(lake.QuarantineKey(ref), object(t, otherRows(ref)))
				say(lake.KindDuplicate, lake.QuarantineKey(ref))
			case "replayed":
				x.put(lake.QuarantineKey(ref), object(t, ref))
			case "unreadable":
				x.put(key, []byte("rubbish"))
				say(lake.KindUnreadable, key)
				// It does not say what it follows, so what is missing right
				// before it shows only when it is mended.
				missing = false
			}
			if missing && any {
				say(lake.KindGap, key)
			} else if missing {
				say(lake.KindHead, key)
			}
			missing, any = false, true
		}
		if missing || acked > 0 && fates[acked-1] == "dropped" && hidden(fates, acked) {
			say(lake.KindTail, "_tidemark/ack.json")
		}

		got := map[string]bool{}
		r, err := lake.Verify(t.Context(), x.l, lake.Options{})
		if err != nil {
			rt.Fatal(err)
		}
		for _, f := range r.Findings {
			got[string(f.Kind)+" "+f.Key] = true
		}
		if !maps.Equal(got, want) {
			rt.Fatalf("fates %q, %d acknowledged\n got %q\nwant %q", fates, acked, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	})
}

// hidden says that the segment which the ack names is missing, and that the
// next object is one that does not say what it follows: then the end of the
// ack is what shows.
func hidden(fates []string, acked int) bool {
	for _, fate := range fates[acked:] {
		if fate != "dropped" {
			return fate == "unreadable"
		}
	}
	return false
}
