package streamer

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/lake/laketest"
	"github.com/tidemark-cdc/tidemark/internal/pgtest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
	"github.com/tidemark-cdc/tidemark/streamer/settle"
)

// errKilled is the end of a process that settles.
var errKilled = errors.New("killed")

// fuse lets a process make so many changes and kills it then.
type fuse struct{ left int }

func (f *fuse) blow() error {
	if f.left--; f.left < 0 {
		return errKilled
	}
	return nil
}

type fusedPostgres struct {
	*replication.Admin
	*fuse
}

func (p fusedPostgres) CreateSlot(ctx context.Context, name string, failover bool) (change.LSN, error) {
	if err := p.blow(); err != nil {
		return 0, err
	}
	return p.Admin.CreateSlot(ctx, name, failover)
}

func (p fusedPostgres) DropSlot(ctx context.Context, name string) (bool, error) {
	if err := p.blow(); err != nil {
		return false, err
	}
	return p.Admin.DropSlot(ctx, name)
}

type fusedSegments struct {
	*fakeTemporal
	*fuse
}

func (s fusedSegments) GiveUp(ctx context.Context, rec segment.Record, why string) (bool, error) {
	if err := s.blow(); err != nil {
		return false, err
	}
	return s.fakeTemporal.GiveUp(ctx, rec, why)
}

// keeping has uploads put objects into the lake.
func (w *world) keeping() *world {
	w.temporal.store = func(ref segment.Ref) error {
		body, err := laketest.Object(ref)
		if err == nil {
			_, err = w.lake.PutSegment(context.Background(), ref, body)
		}
		return err
	}
	return w
}

// look looks at the situation as a process does that dies after changes.
func (w *world) look(changes int, set func(*settle.Config)) (*settle.Case, error) {
	w.t.Helper()
	cfg := w.cfg.Replication
	cfg.ConnString = w.pg.URL()
	admin, err := replication.NewAdmin(cfg, testLog(w.t))
	w.must(err)
	session, err := replication.Open(w.t.Context(), cfg, testLog(w.t))
	w.must(err)
	history, err := session.History(w.t.Context())
	w.must(err)
	w.must(session.Close(w.t.Context()))
	c := settle.Config{Pipeline: w.cfg.Pipeline, Slot: cfg.Slot, System: session.System(), History: history, Writer: "settle"}
	if set != nil {
		set(&c)
	}
	f := &fuse{changes}
	store := &laketest.Faulty{Store: w.store, BeforePut: func(string) error { return f.blow() }}
	return settle.Look(w.t.Context(), c, settle.Deps{
		Lake: lake.New(w.lake.URL(), store), Postgres: fusedPostgres{admin, f}, Segments: fusedSegments{w.temporal, f},
	})
}

// settled settles by processes that die after one change each. After each death
// a streamer that is started has to stop, unless it may go on.
func (w *world) settled(mayGoOn func() bool, set func(*settle.Config)) (deaths int) {
	w.t.Helper()
	for ; deaths < 50; deaths++ {
		c, err := w.look(1, set)
		w.must(err)
		w.t.Logf("found %q, to do %q", c.Found(), c.Steps())
		if c.Nothing() {
			return deaths
		}
		err = c.Do(w.t.Context(), func(s string) { w.t.Log(s) })
		if err == nil {
			if c, err := w.look(0, set); err != nil || !c.Nothing() {
				w.t.Fatalf("when it is settled there is still something to do: %v, %v", c, err)
			}
			return deaths
		}
		if !errors.Is(err, errKilled) {
			w.t.Fatal(err)
		}
		if mayGoOn == nil || !mayGoOn() {
			w.stops(w.start(now))
		}
	}
	w.t.Fatal("it is never settled")
	return deaths
}

// stops waits for a streamer to stop by itself, with a sentence.
func (w *world) stops(s *process) {
	w.t.Helper()
	err := s.ended()
	var stopped *StopError
	if !errors.As(err, &stopped) && !errors.Is(err, replication.ErrSlotMissing) && !errors.Is(err, replication.ErrSlotInvalidated) {
		w.t.Errorf("got %v, want a stop", err)
	}
}

var rowNumber = regexp.MustCompile(`row (\d+)`)

// ids are those of the rows that were uploaded, sorted.
func (w *world) ids() []int {
	w.t.Helper()
	_, rows := w.temporal.uploaded()
	var ids []int
	for _, r := range rows {
		m := rowNumber.FindStringSubmatch(r.Raw)
		if m == nil {
			w.t.Fatalf("row %q has no number", r.Raw)
		}
		n, err := strconv.Atoi(m[1])
		w.must(err)
		ids = append(ids, n)
	}
	slices.Sort(ids)
	return ids
}

// to gives the numbers from one to another.
func to(from, last int) (all []int) {
	for n := from; n <= last; n++ {
		all = append(all, n)
	}
	return all
}

// has fails the test unless exactly these rows were uploaded, each once.
func (w *world) has(want ...[]int) {
	w.t.Helper()
	all := slices.Concat(want...)
	slices.Sort(all)
	if got := w.ids(); !slices.Equal(got, all) {
		w.t.Errorf("in the lake are the rows %v, want %v", got, all)
	}
}

// well fails the test unless verify is content.
func (w *world) well() lake.Report {
	w.t.Helper()
	r, err := lake.Verify(w.t.Context(), w.lake, lake.Options{})
	w.must(err)
	if !r.OK() {
		w.t.Errorf("verify finds %+v", r.Findings)
	}
	return r
}

// goesOn has a streamer upload more rows and verify the lake.
func (w *world) goesOn() lake.Report {
	w.t.Helper()
	w.temporal.hold(func(segment.Ref) bool { return false })
	s := w.start()
	w.insert(3)
	w.caughtUp()
	w.must(s.stop())
	r := w.well()
	// A life that begins from the new record goes on too.
	s = w.start()
	w.insert(1)
	w.caughtUp()
	w.must(s.stop())
	w.well()
	return r
}

func recreate(c *settle.Config) { c.Recreate = true }

// Rows 1 to 5 are in the lake. Of three segments in flight, 6 to 34, the second
// is finished out of order. Then the slot is lost, or moved, and rows are
// committed that nobody has read.
func TestASlotThatWasLostLeavesARecordedGap(t *testing.T) {
	template := pgtest.New(t, pgtest.Options{})
	if err := template.Stop(pgtest.Fast); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		harm func(w *world)
		set  func(*settle.Config)
		// keeps: the slot still brings the last row.
		keeps bool
	}{
		"dropped": {harm: func(w *world) {
			w.exec("SELECT pg_drop_replication_slot('s')")
			w.insert(3)
		}, set: recreate},
		"dropped and made again": {harm: func(w *world) {
			w.exec("SELECT pg_drop_replication_slot('s')")
			w.insert(3)
			w.exec("SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
		}},
		"advanced to the end": {harm: func(w *world) {
			w.insert(3)
			w.exec("SELECT pg_replication_slot_advance('s', pg_current_wal_lsn())")
		}},
		"advanced over some": {harm: func(w *world) {
			w.insert(2)
			w.exec("SELECT pg_replication_slot_advance('s', pg_current_wal_lsn())")
			w.insert(1)
		}, keeps: true},
		"invalidated": {harm: func(w *world) {
			w.insert(3)
			w.must(w.pg.Set(map[string]string{"max_slot_wal_keep_size": "1MB"}))
			w.must(w.pg.Reload())
			w.until("the slot is lost", func() bool {
				w.unpublished()
				w.exec("SELECT pg_switch_wal()")
				w.exec("CHECKPOINT")
				return w.count("SELECT count(*) FROM pg_replication_slots WHERE wal_status = 'lost'") == 1
			})
		}, set: recreate},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, pgtest.Options{From: template.Data()}).keeping()
			s := w.start(now)
			w.insert(5)
			w.caughtUp()
			w.temporal.hold(func(r segment.Ref) bool { return r.Rows != 9 })
			open := func(n int) func() bool { return func() bool { return len(w.temporal.running()) == n } }
			w.insert(10)
			w.until("the first is recorded", open(1))
			w.insert(9)
			w.until("the second is in the lake", func() bool { refs, _ := w.temporal.uploaded(); return len(refs) == 2 })
			w.insert(10)
			w.until("the third is recorded", open(2))
			w.must(s.stop())
			w.insert(1)
			c.harm(w)
			w.stops(w.start(now))
			before := w.rows
			var kept []int
			if c.keeps {
				kept = to(before, before)
			}
			if c.set == nil {
				if _, err := w.look(0, nil); err != nil {
					t.Errorf("resolve does not take it: %v", err)
				}
			} else if _, err := w.look(0, nil); err == nil || !strings.Contains(err.Error(), "--recreate-slot") {
				t.Errorf("resolve makes a slot: %v", err)
			}
			deaths := w.settled(nil, c.set)
			if deaths < 4 { // two segments, two gaps, the ack
				t.Errorf("it died %d times only", deaths)
			}
			if left := w.temporal.running(); len(left) > 0 {
				t.Errorf("still open: %v", left)
			}
			r := w.goesOn()
			w.has(to(1, 5), to(16, 24), kept, to(before+1, before+4))
			if r.Missing() < 2 || len(r.Gaps) != int(r.Missing()) {
				t.Errorf("recorded are the gaps %+v", r.Gaps)
			}
			for _, g := range r.Gaps {
				if g.Reason == "" || g.At.IsZero() {
					t.Errorf("a gap does not say why and when: %+v", g)
				}
			}
		})
	}
}

func TestAHealthyPipelineHasNothingToSettle(t *testing.T) {
	w := newWorld(t, pgtest.Options{}).keeping()
	s := w.start()
	w.insert(5)
	w.caughtUp()
	var refused *settle.RefusedError
	if _, err := w.look(0, recreate); !errors.As(err, &refused) || !strings.Contains(err.Error(), "stop the streamer first") {
		t.Errorf("beside a streamer: %v", err)
	}
	w.must(s.stop())
	w.insert(5) // not read yet: that is no gap
	c, err := w.look(0, recreate)
	if err != nil || !c.Nothing() {
		t.Errorf("%v, %v", c, err)
	}
	if _, err := w.look(0, func(c *settle.Config) { c.Upgraded = true }); !errors.As(err, &refused) {
		t.Errorf("as its own successor: %v", err)
	}
	if _, err := w.look(0, func(c *settle.Config) { c.System.SystemID = "1" }); !errors.As(err, &refused) || !strings.Contains(err.Error(), "--upgraded") {
		t.Errorf("another system: %v", err)
	}
	w.goesOn()
	w.has(to(1, 14))
	if got := fmt.Sprint(w.well().Gaps); got != "[]" {
		t.Errorf("recorded are the gaps %s", got)
	}
}
