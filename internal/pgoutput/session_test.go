package pgoutput

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

var update = flag.Bool("update", false, "write the golden files anew from the recorded sessions")

// session is a recorded one; testdata/record says how it is made.
type session struct {
	name     string
	types    []change.Type
	oracle   []string
	messages []message
}

type message struct {
	walStart change.LSN
	data     []byte
}

// sessionNames gives NAME.VERSION of every recorded session.
func sessionNames(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.session")
	if err != nil || len(files) == 0 {
		t.Fatalf("find recorded sessions: %d files, error %v", len(files), err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".session")
	}
	return files
}

func loadSession(t testing.TB, name string) *session {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".session"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := &session{name: name}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "type":
			var typ change.Type
			err = json.Unmarshal([]byte(rest), &typ)
			s.types = append(s.types, typ)
		case "oracle":
			var text string
			text, err = strconv.Unquote(rest)
			s.oracle = append(s.oracle, text)
		default:
			var lsn uint64
			var data []byte
			lsn, err = strconv.ParseUint(word, 16, 64)
			if err == nil {
				data, err = hex.DecodeString(rest)
			}
			s.messages = append(s.messages, message{change.LSN(lsn), data})
		}
		if err != nil {
			t.Fatalf("session %s: line %q: %v", name, lines.Text(), err)
		}
	}
	if err := lines.Err(); err != nil || len(s.messages) == 0 {
		t.Fatalf("session %s: %d messages, error %v", name, len(s.messages), err)
	}
	return s
}

// framer is one for s with every message kept.
func (s *session) framer() *Framer {
	return NewFramer(FramerConfig{
		TimelineOf: func(change.LSN) change.Timeline { return 1 },
		Describe: func(r *change.Relation) error {
			r.Types = s.types
			return nil
		},
		Messages: true, MessageTime: func() change.Time { return 0 },
	})
}

const received = change.Time(1_700_000_000_000_000)

// frames frames every message of s and hands the frames to do.
func (s *session) frames(t testing.TB, f *Framer, do func(m message, frame Frame)) {
	t.Helper()
	for _, m := range s.messages {
		frame, err := f.Frame(m.walStart, received, m.data)
		if err != nil {
			t.Fatalf("session %s: %v", s.name, err)
		}
		do(m, frame)
	}
	if f.InTransaction() {
		t.Errorf("session %s ends inside a transaction", s.name)
	}
}

// changes collects the changes of s.
func (s *session) changes(t testing.TB) []change.Change {
	t.Helper()
	var out []change.Change
	s.frames(t, s.framer(), func(_ message, frame Frame) { out = append(out, frame.Changes...) })
	return out
}

// decode gives what Decoder makes of c: nil for an image that does not exist.
func decode(d *Decoder, c *change.Change) (before, after []byte, unchanged []string, err error) {
	row, err := d.Decode(c)
	if err != nil {
		return nil, nil, nil, err
	}
	if row.HasBefore() {
		if before, err = row.AppendBefore([]byte{}); err != nil {
			return nil, nil, nil, err
		}
	}
	if row.HasAfter() {
		if after, err = row.AppendAfter([]byte{}); err != nil {
			return nil, nil, nil, err
		}
	}
	return before, after, row.Unchanged(), nil
}

func TestRecordedSessionsGiveTheirGoldenFrames(t *testing.T) {
	for _, name := range sessionNames(t) {
		t.Run(name, func(t *testing.T) {
			s := loadSession(t, name)
			var got strings.Builder
			d := NewDecoder()
			s.frames(t, s.framer(), func(m message, frame Frame) {
				switch frame.Kind {
				case Changes:
				case Commit:
					fmt.Fprintf(&got, "commit, ends at %s\n", frame.CommitEnd)
				default:
					fmt.Fprintf(&got, "%s (%c)\n", frame.Kind, m.data[0])
				}
				for i := range frame.Changes {
					got.WriteString(describe(t, d, &frame.Changes[i]))
				}
			})
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			diff(t, string(want), got.String())
		})
	}
}

// describe gives c in the form of the golden files.
func describe(t *testing.T, d *Decoder, c *change.Change) string {
	t.Helper()
	before, after, unchanged, err := decode(d, c)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  lsn %s  xid %d  %s", c.Position, c.LSN, c.XID, c.Operation)
	if c.Relation != nil {
		fmt.Fprintf(&b, " %s (%c)", c.Relation.QualifiedName(), c.Relation.Identity)
	}
	if c.CommitTime == 0 {
		b.WriteString("  no commit time")
	}
	if c.Joined {
		b.WriteString("  joined")
	}
	b.WriteByte('\n')
	if before != nil {
		fmt.Fprintf(&b, "\tbefore     %s\n", shorten(before))
	}
	if after != nil {
		fmt.Fprintf(&b, "\tafter      %s\n", shorten(after))
	}
	if len(unchanged) > 0 {
		fmt.Fprintf(&b, "\tunchanged  %s\n", strings.Join(unchanged, ", "))
	}
	return b.String()
}

// shorten writes a run of more than 100 equal letters as one of them and its
// length, x{2100}.
func shorten(s []byte) string {
	var b strings.Builder
	for len(s) > 0 {
		n := 1
		for n < len(s) && s[n] == s[0] {
			n++
		}
		if n > 100 {
			fmt.Fprintf(&b, "%c{%d}", s[0], n)
		} else {
			b.Write(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

func diff(t *testing.T, want, got string) {
	t.Helper()
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			t.Fatalf("line %d:\n got %s\nwant %s", i+1, g[i], w[i])
		}
	}
	if len(w) != len(g) {
		t.Fatalf("%d lines, want %d", len(g), len(w))
	}
}

// The server gave the oracle's texts when it ran select to_json(t) from t.
func TestImagesAreWhatToJSONGives(t *testing.T) {
	for _, name := range sessionNames(t) {
		s := loadSession(t, name)
		d := NewDecoder()
		var images []string
		for _, c := range s.changes(t) {
			_, after, _, err := decode(d, &c)
			if err != nil {
				t.Fatal(err)
			}
			images = append(images, string(after))
		}
		for _, want := range s.oracle {
			if !slices.Contains(images, want) {
				t.Errorf("session %s: to_json gave, and no change has as its image:\n%s", name, want)
			}
		}
	}
}

func TestBothServerVersionsGiveTheSameRows(t *testing.T) {
	rows := func(name string) []string {
		var out []string
		d := NewDecoder()
		for _, c := range loadSession(t, name).changes(t) {
			before, after, unchanged, err := decode(d, &c)
			if err != nil {
				t.Fatal(err)
			}
			table := ""
			if c.Relation != nil {
				table = c.Relation.QualifiedName()
			}
			out = append(out, fmt.Sprintf("%d %s %s %s %s %s", c.Position.Ordinal, c.Operation, table, before, after, unchanged))
		}
		return out
	}
	for _, name := range sessionNames(t) {
		if base, ok := strings.CutSuffix(name, ".15"); ok {
			diff(t, strings.Join(rows(name), "\n"), strings.Join(rows(base+".18"), "\n"))
		}
	}
}

// What a Framer makes of a session must not depend on what it has seen before.
func TestAReplayAfterResetGivesTheSameChanges(t *testing.T) {
	for _, name := range sessionNames(t) {
		s := loadSession(t, name)
		f := s.framer()
		var first, second []change.Change
		s.frames(t, f, func(_ message, frame Frame) { first = append(first, frame.Changes...) })
		// The connection breaks within the first transaction, then all comes again.
		f.Reset()
		for _, m := range s.messages {
			if frame, err := f.Frame(m.walStart, received, m.data); err != nil {
				t.Fatal(err)
			} else if frame.Kind == Begin {
				break
			}
		}
		f.Reset()
		s.frames(t, f, func(_ message, frame Frame) { second = append(second, frame.Changes...) })
		if len(first) != len(second) {
			t.Fatalf("session %s: %d changes, then %d", name, len(first), len(second))
		}
		for i := range first {
			a, b := first[i], second[i]
			if a.Position != b.Position || (a.Relation == nil) != (b.Relation == nil) || a.Relation != nil && a.Relation.Hash != b.Relation.Hash || a.Operation != b.Operation || a.Joined != b.Joined {
				t.Errorf("session %s: change %d is %v, then %v", name, i, a, b)
			}
			if i > 0 && !first[i-1].Position.Less(a.Position) {
				t.Errorf("session %s: position %s comes after %s", name, a.Position, first[i-1].Position)
			}
		}
	}
}

// A message that is cut short or has bytes left over is malformed, and never
// read beyond its end.
func TestEveryPartOfARowMessageIsMalformed(t *testing.T) {
	for _, name := range sessionNames(t) {
		d := NewDecoder()
		for _, c := range loadSession(t, name).changes(t) {
			if c.Operation == change.Truncate || len(c.Raw) > 500 {
				continue
			}
			whole := c.Raw
			for n := range len(whole) {
				c.Raw = whole[:n:n]
				if _, err := d.Decode(&c); !errors.Is(err, ErrMalformed) {
					t.Fatalf("session %s: %d of %d bytes of the %s at %s give %v, want ErrMalformed", name, n, len(whole), c.Operation, c.Position, err)
				}
			}
			c.Raw = append(slices.Clone(whole), 0)
			if _, err := d.Decode(&c); !errors.Is(err, ErrMalformed) {
				t.Fatalf("session %s: a byte after the %s at %s gives %v, want ErrMalformed", name, c.Operation, c.Position, err)
			}
		}
	}
}
