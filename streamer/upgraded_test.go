package streamer

import (
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/pgtest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer/settle"
)

// succeeded puts the cluster that pg_upgrade makes of the world's in its place,
// and gives where the WAL of the old one ended.
func (w *world) succeeded() change.LSN {
	w.t.Helper()
	in, err := pgtest.Find(15)
	w.must(err)
	out, err := exec.CommandContext(w.t.Context(), filepath.Join(in.Bin, "pg_controldata"), "-D", w.pg.Data()).CombinedOutput()
	if err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
	end := regexp.MustCompile(`Latest checkpoint location: +(\S+)`).FindSubmatch(out)
	if end == nil {
		w.t.Fatalf("no end in %s", out)
	}
	fresh := pgtest.New(w.t, pgtest.Options{})
	w.must(fresh.Stop(pgtest.Fast))
	upgrade(w.t, w.pg, fresh)
	w.pg = pgtest.New(w.t, pgtest.Options{Dir: filepath.Dir(fresh.Data()), Port: w.pg.Port()})
	w.connect()
	return w.parse(string(end[1]))
}

func TestAnUpgradedServerSucceedsTheOldOne(t *testing.T) {
	for name, c := range map[string]struct {
		// shut ends the old server.
		shut func(w *world, s *process)
		gaps int64
		// showEnd: the person says where the old WAL ended.
		showEnd bool
	}{
		"everything was confirmed": {showEnd: true, shut: func(w *world, s *process) {
			w.must(w.pg.Stop(pgtest.Fast)) // it waits for the streamer
			w.must(s.stop())
		}},
		"everything was confirmed, and nothing shows it": {gaps: 1, shut: func(w *world, s *process) {
			w.must(w.pg.Stop(pgtest.Fast))
			w.must(s.stop())
		}},
		"rows were committed that nobody has read": {gaps: 1, showEnd: true, shut: func(w *world, s *process) {
			w.temporal.hold(func(segment.Ref) bool { return true })
			w.insert(3)
			w.open(1)
			w.must(s.stop())
			w.insert(2)
			w.must(w.pg.Stop(pgtest.Fast))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, pgtest.Options{}).keeping()
			s := w.start(now)
			w.insert(5)
			w.caughtUp()
			c.shut(w, s)
			end := w.succeeded()
			w.stops(w.start())
			var refused *settle.RefusedError
			if _, err := w.look(0, recreate); !errors.As(err, &refused) || !strings.Contains(err.Error(), "--upgraded") {
				t.Errorf("without being told: %v", err)
			}
			before := w.rows
			deaths := w.settled(nil, func(cfg *settle.Config) {
				cfg.Recreate, cfg.Upgraded = true, true
				if c.showEnd {
					cfg.OldEnd = end
				}
			})
			if deaths < 3 { // the succession, the slot, the link, the ack
				t.Errorf("it died %d times only", deaths)
			}
			r := w.goesOn()
			w.has(to(1, 5), to(before+1, before+4))
			if len(r.Gaps) != 1 || r.Missing() != c.gaps || len(r.Identity.Successions) != 1 {
				t.Errorf("recorded are the gaps %+v and the identity %+v", r.Gaps, r.Identity)
			}
			if last := r.Ack.Last; last.Timeline != 2 {
				t.Errorf("rows of the new server stand at %s", last)
			}
			if name != "everything was confirmed" {
				return
			}
			// Its own failovers are counted from there on.
			standby := w.coldCopy(w.conninfo())
			s = w.start()
			w.insert(4)
			w.caughtUp()
			standby.replayed()
			standby.promote()
			standby.insert(2)
			standby.takeOver()
			w.caughtUp()
			w.must(s.stop())
			if last := w.well().Ack.Last; last.Timeline != 3 {
				t.Errorf("rows after the failover stand at %s", last)
			}
			w.has(to(1, w.rows))
		})
	}
}

// A server of an older succession is refused.
func TestTheOldServerIsRefusedAfterTheSuccession(t *testing.T) {
	w := newWorld(t, pgtest.Options{}).keeping()
	_, err := w.lake.RecordSuccession(t.Context(), lake.Succession{SystemID: "1", TimelineOffset: 1, Reason: "pg_upgrade"})
	w.must(err)
	err = w.start().ended()
	var stopped *StopError
	if !errors.As(err, &stopped) || !strings.Contains(err.Error(), "connect to the new server") {
		t.Errorf("got %v", err)
	}
	var refused *settle.RefusedError
	if _, err := w.look(0, nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), "connect to the new server") {
		t.Errorf("got %v", err)
	}
}
