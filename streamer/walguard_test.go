package streamer

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

const gib = 1 << 30

var usualLimits = WALLimits{WarnLeft: 24 * time.Hour, AlarmLeft: 4 * time.Hour, WarnRetained: 16 * gib, AlarmRetained: 64 * gib}

// guarded is a guard with a clock that only tests move.
type guarded struct {
	walGuard
	now  time.Time
	last WAL
	said []WALLevel
}

func newGuarded() *guarded {
	return &guarded{walGuard: walGuard{limits: usualLimits}, now: time.Unix(1_000_000, 0)}
}

// look takes a look every 5 s for as long as d, while the kept WAL goes from
// one size to another. A limit of zero is none.
func (g *guarded) look(d time.Duration, from, to float64, limit float64) {
	steps := int(d / watchEvery)
	for i := range steps {
		g.now = g.now.Add(watchEvery)
		g.at(from+(to-from)*float64(i+1)/float64(steps), limit)
	}
}

func (g *guarded) at(retained, limit float64) {
	slot := replication.SlotInfo{Name: "s", RestartLSN: g.restart, RetainedBytes: int64(retained)}
	if limit > 0 {
		safe := int64(limit - retained)
		slot.SafeWALSize = &safe
	}
	var say bool
	if g.last, say = g.take(g.now, slot); say {
		g.said = append(g.said, g.last.Level)
	}
}

func (g *guarded) want(t *testing.T, level WALLevel, hours float64) {
	t.Helper()
	if g.last.Level != level {
		t.Errorf("level is %s, want %s: %s", g.last.Level, level, g.last)
	}
	switch h := g.last.HoursLeft; {
	case hours == 0 && h != nil:
		t.Errorf("%.2f hours are left, want no such figure", *h)
	case hours != 0 && (h == nil || math.Abs(*h-hours) > hours/100):
		t.Errorf("%v hours are left, want %.2f: %s", h, hours, g.last)
	}
}

func TestHoursLeftAreThoseAtThePresentRate(t *testing.T) {
	g := newGuarded()
	g.look(30*time.Second, 0, gib/8, 100*gib)
	g.want(t, WALFine, 0) // too soon to tell
	g.look(10*time.Minute, gib/8, 2.5*gib, 100*gib)
	g.want(t, WALFine, 97.5/(2.375*6)) // soon, but less than a tenth is in use
	g.look(40*time.Minute, 2.5*gib, 12*gib, 100*gib)
	g.want(t, WALWarn, 88/(9.5*1.5))
	g.look(4*time.Hour, 12*gib, 69*gib, 100*gib)
	g.want(t, WALAlarm, 31/14.25)
	if changes := slices.Compact(slices.Clone(g.said)); !slices.Equal(changes, []WALLevel{WALWarn, WALAlarm}) {
		t.Errorf("said %v, want the warning and then the alarm", g.said)
	}
	// It shrinks: no figure, and after a while no worry.
	g.look(10*time.Minute, 69*gib, 5*gib, 100*gib)
	g.want(t, WALFine, 0)
	if g.last.BytesPerSecond == nil || *g.last.BytesPerSecond > -100<<20 {
		t.Errorf("it shrinks by 64 GiB in ten minutes: %s", g.last)
	}
	if last := g.said[len(g.said)-1]; last != WALFine {
		t.Errorf("the end of the worry was not said: %v", g.said)
	}
}

func TestWALThatIsKeptAndGivenBackIsNoGrowth(t *testing.T) {
	g := newGuarded()
	for range 60 {
		g.look(30*time.Second, 15*gib, 20*gib, 100*gib)
	}
	g.want(t, WALFine, 0)
	if len(g.said) > 0 {
		t.Errorf("said %v of WAL that comes and goes", g.said)
	}
}

func TestTheShareOfTheLimitCountsWhateverTheRate(t *testing.T) {
	g := newGuarded()
	g.at(49*gib, 100*gib)
	g.want(t, WALFine, 0)
	g.at(50*gib, 100*gib)
	g.want(t, WALWarn, 0)
	g.at(80*gib, 100*gib)
	g.want(t, WALAlarm, 0)
	g.at(103*gib, 100*gib) // beyond the limit until the next checkpoint
	g.want(t, WALAlarm, 0)
}

func TestWithoutALimitTheKeptBytesCount(t *testing.T) {
	g := newGuarded()
	g.look(time.Hour, 0, 15*gib, 0)
	g.want(t, WALFine, 0)
	g.look(time.Hour, 15*gib, 20*gib, 0)
	g.want(t, WALWarn, 0)
	g.look(time.Hour, 20*gib, 70*gib, 0)
	g.want(t, WALAlarm, 0)
	if s := g.last.String(); !strings.Contains(s, "the disk is the limit") || !strings.Contains(s, "70.0 GiB") || !strings.Contains(s, "14.2 MiB more each second") {
		t.Errorf("it says %s", s)
	}
	off := walGuard{}
	if w, say := off.take(g.now, replication.SlotInfo{RetainedBytes: 1 << 50}); w.Level != WALFine || say {
		t.Errorf("without limits of ours: %s", w)
	}
}

func TestAGapAndAnotherServerBeginTheRateAnew(t *testing.T) {
	g := newGuarded()
	g.restart = 0x5000
	g.look(10*time.Minute, 0, 10*gib, 100*gib)
	g.want(t, WALAlarm, 90.0/60)
	// Nobody could look for an hour, in which much was written and uploaded.
	g.now = g.now.Add(time.Hour)
	g.at(30*gib, 100*gib)
	if g.last.BytesPerSecond != nil {
		t.Errorf("a rate over an hour without a look: %s", g.last)
	}
	g.look(10*time.Minute, 30*gib, 30*gib, 100*gib)
	g.want(t, WALFine, 0)
	// A promoted standby, whose slot is behind.
	g.restart = 0x6000
	g.look(10*time.Minute, 1*gib, 1*gib, 100*gib)
	safe := int64(60 * gib)
	g.last, _ = g.take(g.now.Add(watchEvery), replication.SlotInfo{RestartLSN: 0x5000, RetainedBytes: 40 * gib, SafeWALSize: &safe})
	if g.last.BytesPerSecond != nil {
		t.Errorf("a rate between two servers: %s", g.last)
	}
}

// A level that flickers is said once; one that stands is said again.
func TestALevelIsSaidOnceAndThenNowAndThen(t *testing.T) {
	g := newGuarded()
	for range 60 {
		g.look(10*time.Second, 49*gib, 51*gib, 100*gib)
		g.look(10*time.Second, 51*gib, 49*gib, 100*gib)
	}
	if len(g.said) != 1 {
		t.Errorf("in 20 minutes around the limit it was said %v", g.said)
	}
	g = newGuarded()
	g.look(2*time.Hour+time.Minute, 90*gib, 90*gib, 100*gib)
	if len(g.said) != 9 {
		t.Errorf("an alarm of two hours was said %d times, want once and each 15 minutes", len(g.said))
	}
}

func TestALostSlotIsAnAlarm(t *testing.T) {
	w := WALOf(usualLimits, replication.SlotInfo{WALStatus: "lost"}, time.Now())
	if w.Level != WALAlarm || !strings.Contains(w.String(), "the slot is lost") {
		t.Errorf("%s: %s", w.Level, w)
	}
}

func TestWhatHoldsTheWALIsNamed(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	ref := segment.Ref{Pipeline: "shop", First: change.Position{Timeline: 1, LSN: 0x200}}
	old := []Flight{{Ref: ref, Since: now.Add(-time.Hour)}}
	for name, c := range map[string]struct {
		st       Status
		slot     replication.SlotInfo
		what, do string
	}{
		"nobody":           {Status{State: "waiting for Postgres: refused"}, replication.SlotInfo{}, "nobody reads the slot (waiting for Postgres: refused)", "mend"},
		"another":          {Status{State: noteStandby}, replication.SlotInfo{Active: true, ActivePID: 42}, "process 42", "pg_terminate_backend(42)"},
		"a segment":        {Status{Connected: true, InFlight: old}, replication.SlotInfo{RetainedBytes: 100, LagBytes: 90}, "the first segment in flight, 00000001-0000000000000200-0000000000, dispatched 1h0m0s ago", "tidemark/shop/"},
		"a transaction":    {Status{Connected: true, InFlight: old}, replication.SlotInfo{RetainedBytes: 100, LagBytes: 10}, "a transaction that has been open for long", "pg_prepared_xacts"},
		"more than we can": {Status{Connected: true}, replication.SlotInfo{RetainedBytes: 100, LagBytes: 90}, "rows that are on their way", "add workers"},
	} {
		what, do := holder(c.st, c.slot, now)
		if !strings.Contains(what, c.what) || !strings.Contains(do, c.do) {
			t.Errorf("%s: %s; %s", name, what, do)
		}
	}
}
