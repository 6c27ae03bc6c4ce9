package lake_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/lake/laketest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// branch makes the lake one whose timeline ended at the LSN, and says so.
func (x *testLake) branch(at change.LSN) lake.Divergence {
	x.t.Helper()
	d := lake.Divergence{
		Pipeline: laketest.Pipeline, SystemID: laketest.SystemID,
		After: change.JustBefore(1, at), Through: change.JustBefore(2, at),
		Reason: "a standby was promoted", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	if err := x.l.RecordDivergence(x.t.Context(), d); err != nil {
		x.t.Fatal(err)
	}
	return d
}

// onward adds a segment of the timeline that survived, in the place of the last
// one's rows.
func (x *testLake) onward(follows int, lsn change.LSN) segment.Ref {
	x.t.Helper()
	ref := x.refs[7]
	ref.First = position{Timeline: 2, LSN: lsn}
	ref.Last = position{Timeline: 2, LSN: lsn + 5, Ordinal: 3}
	ref.Follows = x.refs[follows].Last
	x.put(lake.Key(ref), object(x.t, ref))
	return ref
}

// Segments 6 and 7 were uploaded from a branch that was abandoned.
func TestRowsOfAnAbandonedBranchAreReportedAndNoPartOfTheChain(t *testing.T) {
	x := wholeLake(t)
	at := x.refs[6].First.LSN
	next := x.onward(5, at+1)
	if r := x.verify(); r.OK() {
		t.Error("without a record two branches of history are well")
	}
	x.branch(at)
	x.ack(next.Last)
	r := x.verify()
	if !r.OK() || len(r.Divergences) != 1 {
		t.Fatalf("%+v", r)
	}
	if d := r.Divergences[0]; d.LostObjects != 2 || d.LostRows != x.refs[6].Rows+x.refs[7].Rows || len(d.Straddling) > 0 {
		t.Errorf("%+v", d)
	}
	if c := r.Chains[0]; c.Objects != 7 || c.Last != next.Last || r.Objects != 9 {
		t.Errorf("%+v", r)
	}
	// What is lost must not hide what is missing.
	x.delete(5)
	if r := x.verify(); r.Counts[lake.KindGap] != 1 {
		t.Errorf("%+v", r.Findings)
	}
}

func TestAnObjectThatHoldsRowsFromBeforeTheSwitchpointStaysInTheChain(t *testing.T) {
	x := wholeLake(t)
	x.delete(6)
	x.delete(7)
	x.refs[6].Last.LSN += 9
	key := x.add(6, func(*segment.Ref) {})
	x.branch(x.refs[6].First.LSN + 1)
	next := x.onward(6, x.refs[6].First.LSN+2)
	x.ack(next.Last)
	r := x.verify()
	if !r.OK() || !slices.Equal(r.Divergences[0].Straddling, []string{key}) || r.Divergences[0].LostObjects != 0 {
		t.Errorf("%+v", r)
	}
}

func TestADivergenceThatIsNoneIsRefused(t *testing.T) {
	x := wholeLake(t)
	for name, d := range map[string]lake.Divergence{
		"one timeline": {Pipeline: "p", SystemID: "1", After: change.JustBefore(1, 5), Through: change.JustBefore(1, 9)},
		"two LSNs":     {Pipeline: "p", SystemID: "1", After: change.JustBefore(1, 5), Through: change.JustBefore(2, 9)},
		"no pipeline":  {SystemID: "1", After: change.JustBefore(1, 5), Through: change.JustBefore(2, 5)},
	} {
		if err := x.l.RecordDivergence(t.Context(), d); err == nil {
			t.Errorf("%s is recorded", name)
		}
	}
	d := x.branch(0x500)
	if err := x.l.RecordDivergence(t.Context(), d); err != nil {
		t.Errorf("recorded twice: %v", err)
	}
	x.put(d.Key(), []byte(`{"after":"00000001-0000000000000001-0000000000"}`))
	if r := x.verify(); r.Counts[lake.KindUnreadable] != 1 {
		t.Errorf("a damaged divergence: %+v", r)
	}
	if _, err := x.l.Divergences(t.Context()); !errors.Is(err, lake.ErrUnreadable) {
		t.Errorf("a damaged divergence is read: %v", err)
	}
}

// Rows of a cluster and of its successor are one chain.
func TestASuccessorsRowsAreOfTheSameChain(t *testing.T) {
	x := wholeLake(t)
	head := x.onward(7, 0x100)
	ofSuccessor := head
	ofSuccessor.SystemID = "999"
	x.put(lake.Key(head), object(t, ofSuccessor))
	x.ack(head.Last)
	if r := x.verify(); r.Counts[lake.KindForeign] != 1 {
		t.Errorf("rows of another cluster: %+v", r.Findings)
	}
	s := lake.Succession{SystemID: "999", TimelineOffset: 1, Reason: "pg_upgrade", At: time.Now()}
	for range 2 { // a reply can be lost
		id, err := x.l.RecordSuccession(t.Context(), s)
		if err != nil || len(id.Successions) != 1 {
			t.Fatalf("%+v, %v", id, err)
		}
		s.TimelineOffset++ // the recorded one stands
	}
	if r := x.verify(); !r.OK() || len(r.Chains) != 1 {
		t.Errorf("%+v", r)
	}
	id, err := x.l.ReadIdentity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if system, offset := id.Present(); system != "999" || offset != 1 {
		t.Errorf("the present system is %s with the offset %d", system, offset)
	}
	if err := id.Check(laketest.Pipeline, "999"); err != nil {
		t.Error(err)
	}
	if err := id.Check(laketest.Pipeline, laketest.SystemID); !errors.Is(err, lake.ErrForeign) || !strings.Contains(err.Error(), "connect to the new server") {
		t.Errorf("the old server: %v", err)
	}
	if _, err := x.l.RecordSuccession(t.Context(), lake.Succession{SystemID: laketest.SystemID, TimelineOffset: 3}); err == nil {
		t.Error("the old server has succeeded the new one")
	}
	var out bytes.Buffer
	if err := x.verify().WriteText(&out); err != nil || !strings.Contains(out.String(), "Successor Postgres system 999") {
		t.Errorf("%v: %s", err, out.String())
	}
}

func TestRecordedGapsAreShownWithWhyAndWhen(t *testing.T) {
	x := wholeLake(t)
	x.delete(4)
	gap := lake.Gap{Pipeline: laketest.Pipeline, SystemID: laketest.SystemID, Follows: x.refs[3].Last, Last: x.refs[4].Last,
		Reason: "the slot was dropped", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	if err := x.l.RecordGap(t.Context(), gap); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := x.verify().WriteText(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"the slot was dropped", "2026-01-02T03:04:05Z", "Well, except for 1 recorded gap"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if gaps, err := x.l.Gaps(t.Context()); err != nil || !slices.Equal(gaps, []lake.Gap{gap}) {
		t.Errorf("%+v, %v", gaps, err)
	}
}
