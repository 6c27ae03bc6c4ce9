package ring

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

var update = flag.Bool("update", false, "write what the scripts print into testdata")

// TestScripts plays testdata/*.txt. A script is made of blocks: commands, a
// line of dashes, and what they print; then the state of the ring, unless it is
// as before. Lines with # are comments. Positions are written LSN.ordinal, or
// timeline:LSN.ordinal, all in decimal; times in seconds.
//
//	ring [max=N] [changes=N] [rows=N] [bytes=N] [last=P] [ack=N]
//	        a new ring; max is in changes of 10 bytes
//	tx LSN N [size=N] [day=D] [tl=N] [joined]
//	        a transaction of N changes; it ends 5 above LSN
//	add LSN FROM TO [same]  changes of a transaction, without its end
//	mark LSN, keepalive LSN
//	at N                    the time is N seconds from now on
//	propose [drain], cut [drain], due
//	waiting P               what waits, up to P
//	adopt P                 cut there
//	open, extend ID P, finish ID, lift on|off
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var s script
			got := s.play(string(text))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got != string(text) {
				t.Errorf("%s: got\n%s", file, got)
			}
		})
	}
}

type script struct {
	ring  *Ring
	now   int64
	state string
}

// play runs the commands and returns the script with what they print now.
func (s *script) play(text string) string {
	var out strings.Builder
	for i, block := range strings.Split(strings.TrimRight(text, "\n"), "\n\n") {
		if i > 0 {
			out.WriteString("\n")
		}
		commands, _, expected := strings.Cut(block, "\n----")
		out.WriteString(commands + "\n")
		var printed strings.Builder
		for line := range strings.Lines(commands) {
			line, _, _ = strings.Cut(line, "#")
			if f := strings.Fields(line); len(f) > 0 {
				printed.WriteString(s.command(f))
				expected = true
			}
		}
		if expected {
			out.WriteString("----\n" + printed.String() + s.changedState())
		}
	}
	return out.String()
}

func (s *script) changedState() string {
	st, a := s.ring.Stats(), s.ring.Ack()
	state := fmt.Sprintf("read %d cut %d write %d, ack %d after %s", st.Read, st.Cut, st.Write, uint64(a.LSN), short(a.Last))
	if st.FinishedSegments > 0 {
		state += fmt.Sprintf(", %d finished behind a gap", st.FinishedSegments)
	}
	if st.OpenTransaction {
		state += ", transaction open"
	}
	if st.Full {
		state += ", full"
	}
	if st.Over > 0 {
		state += fmt.Sprintf(", %d bytes over", st.Over)
	}
	if state == s.state {
		return ""
	}
	s.state = state
	return state + "\n"
}

func (s *script) command(f []string) string {
	opts := map[string]string{}
	var args []string
	for _, a := range f[1:] {
		k, v, _ := strings.Cut(a, "=")
		opts[k] = v
		if !strings.Contains(a, "=") {
			args = append(args, a)
		}
	}
	num := func(i int) int { return number(args[i]) }
	opt := func(name string, def int) int {
		if v, ok := opts[name]; ok {
			return number(v)
		}
		return def
	}
	_, drain := opts["drain"]
	now := change.Time(s.now * 1e6)
	switch f[0] {
	case "ring":
		start := Start{Ack: change.LSN(opt("ack", 0))}
		if p, ok := opts["last"]; ok {
			start.Last = position(p)
		}
		s.ring = New(Config{
			MaxBytes: int64(opt("max", 1000)) * (10 + Overhead), MaxChanges: opt("changes", 0),
			SegmentRows: opt("rows", 0), SegmentBytes: int64(opt("bytes", 0)), MaxAge: 10 * time.Second,
		}, start)
		return ""
	case "tx", "add":
		return s.add(f[0] == "tx", args, opts, opt)
	case "mark":
		return moved(s.ring.Mark(change.LSN(num(0))))
	case "keepalive":
		return moved(s.ring.Keepalive(change.LSN(num(0))))
	case "at":
		s.now = int64(num(0))
		return ""
	case "propose":
		v, ok := s.ring.Propose(now, drain)
		if !ok {
			return "nothing\n"
		}
		return "propose " + describe(v) + "\n"
	case "cut":
		v, ok := s.ring.Propose(now, drain)
		if !ok {
			return "nothing\n"
		}
		return s.dispatch(s.ring.Cut(v))(v)
	case "due":
		d, ok := s.ring.NextDue(now)
		if !ok {
			return "not by age\n"
		}
		return fmt.Sprintf("in %v\n", d)
	case "waiting":
		v, reached, beyond := s.ring.Waiting(position(args[0]))
		return fmt.Sprintf("%s, reached %v, beyond %v\n", describe(v), reached, beyond)
	case "adopt":
		v, reached, _ := s.ring.Waiting(position(args[0]))
		if !reached {
			return "not reached\n"
		}
		return s.dispatch(s.ring.Cut(v))(v)
	case "open":
		id, err := s.ring.Open()
		if err != nil {
			return err.Error() + "\n"
		}
		return fmt.Sprintf("segment %s opened\n", id)
	case "extend":
		v, _, _ := s.ring.Waiting(position(args[1]))
		if err := s.ring.Extend(SegmentID(num(0)), v); err != nil {
			return err.Error() + "\n"
		}
		return "taken over " + describe(v) + "\n"
	case "finish":
		return moved(s.ring.Finish(SegmentID(num(0))))
	case "lift":
		s.ring.Lift(args[0] == "on")
		return ""
	}
	return fmt.Sprintf("unknown command %q\n", f[0])
}

func (s *script) add(whole bool, args []string, opts map[string]string, opt func(string, int) int) string {
	lsn, from, to := number(args[0]), 0, 0
	if whole {
		to = number(args[1]) - 1
	} else {
		from, to = number(args[1]), number(args[2])
	}
	_, joined := opts["joined"]
	added, dropped := 0, 0
	report := func() string {
		if dropped > 0 {
			return fmt.Sprintf("%d dropped\n", dropped)
		}
		return ""
	}
	for i := from; i <= to; i++ {
		c := change.Change{
			Position:   change.Position{Timeline: change.Timeline(opt("tl", 1)), LSN: change.LSN(lsn), Ordinal: uint64(i)},
			CommitTime: change.Time(opt("day", 1)) * 24 * 3600 * 1e6,
			Received:   change.Time(s.now * 1e6),
			Raw:        bytes.Repeat([]byte{'x'}, opt("size", 10)),
			Joined:     joined && i < to,
		}
		if s.ring.LastReceived().Less(c.Position) && !s.ring.Admit(len(c.Raw)) {
			return report() + fmt.Sprintf("no room for %s\n", short(c.Position))
		}
		ok, err := s.ring.Add(&c)
		switch {
		case err != nil:
			return err.Error() + "\n"
		case ok:
			added++
		default:
			dropped++
		}
	}
	if whole {
		return report() + moved(s.ring.Mark(change.LSN(lsn+5)))
	}
	return report()
}

func (s *script) dispatch(id SegmentID, err error) func(View) string {
	return func(v View) string {
		if err != nil {
			return err.Error() + "\n"
		}
		return fmt.Sprintf("segment %s %s\n", id, describe(v))
	}
}

func describe(v View) string {
	if v.Rows == 0 {
		return "no changes"
	}
	return fmt.Sprintf("%s to %s, %d changes", short(v.First), short(v.Last), v.Rows)
}

func moved(yes bool) string {
	if yes {
		return "the ack moved\n"
	}
	return ""
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}

func position(s string) change.Position {
	timeline, rest, ok := strings.Cut(s, ":")
	if !ok {
		timeline, rest = "1", s
	}
	lsn, ordinal, _ := strings.Cut(rest, ".")
	return change.Position{Timeline: change.Timeline(number(timeline)), LSN: change.LSN(number(lsn)), Ordinal: uint64(number(ordinal))}
}

func short(p change.Position) string {
	if p.IsZero() {
		return "nothing"
	}
	s := fmt.Sprintf("%d.%d", uint64(p.LSN), p.Ordinal)
	if p.Timeline > 1 {
		s = fmt.Sprintf("%d:%s", p.Timeline, s)
	}
	return s
}
