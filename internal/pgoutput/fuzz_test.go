package pgoutput

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// exact copies b into memory that ends where it does, so that the race detector
// and the runtime see a read beyond its end.
func exact(b []byte) []byte { return append(make([]byte, 0, len(b)), b...) }

// The input is a stream of messages, each with its length before it.
func FuzzFrame(f *testing.F) {
	for _, name := range sessionNames(f) {
		var stream []byte
		for _, m := range loadSession(f, name).messages {
			if len(m.data) < 256 {
				stream = append(stream, byte(len(m.data)))
				stream = append(stream, m.data...)
			}
		}
		f.Add(stream)
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		fr := newFramer(true)
		d := NewDecoder()
		var last change.Position
		for len(stream) > 0 {
			n := min(int(stream[0]), len(stream)-1)
			msg := exact(stream[1 : 1+n])
			stream = stream[1+n:]
			was := fr.InTransaction()
			frame, err := fr.Frame(1, received, msg)
			if err != nil {
				if !errors.Is(err, ErrMalformed) {
					t.Fatalf("error %v is not ErrMalformed", err)
				}
				return // the connection is made anew
			}
			switch frame.Kind {
			case Begin:
				last = change.Position{}
			case Commit:
				if !was || frame.CommitEnd == 0 {
					t.Fatalf("commit, ends at %s, in a transaction: %v", frame.CommitEnd, was)
				}
			}
			if (frame.Kind == Changes) != (len(frame.Changes) > 0) {
				t.Fatalf("%s with %d changes", frame.Kind, len(frame.Changes))
			}
			changes := slices.Clone(frame.Changes)
			d.Follow(changes)
			for i := range changes {
				c := &changes[i]
				if was && i+len(frame.Changes) > 0 && !last.IsZero() && !last.Less(c.Position) {
					t.Fatalf("position %s comes after %s", c.Position, last)
				}
				if was {
					last = c.Position
				}
				if &c.Raw[0] != &msg[0] || len(c.Raw) != len(msg) || c.Joined != (i < len(frame.Changes)-1) {
					t.Fatalf("change %d of %d: %+v", i, len(frame.Changes), c)
				}
				if _, _, _, err := decode(d, c); err != nil && !errors.Is(err, ErrMalformed) {
					t.Fatalf("error %v is not ErrMalformed", err)
				}
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	rel := table([]change.Type{{OID: 70001, Kind: change.KindDomain, Base: oidInt4}},
		change.Column{Name: "id", Type: 70001, Key: true},
		change.Column{Name: "v", Type: 25},
		change.Column{Name: "b", Type: oidBool, Key: true},
		change.Column{Name: "n", Type: oidNumeric},
		change.Column{Name: "t", Type: oidTimestampTZ})
	f.Add([]byte(row('I', 1).tuple('N', "1", "a\x00\n", "t", "1.50", "2026-01-02 03:04:05+00")))
	f.Add([]byte(row('U', 1).tuple('K', "1", nil, "t", nil, nil).tuple('N', "2", toasted{}, "f", "NaN", nil)))
	f.Add([]byte(row('U', 1).tuple('O', "1", "a", "t", "1", "infinity").tuple('N', "2", toasted{}, "f", "1e5", nil)))
	f.Add([]byte(row('D', 1).tuple('K', "1", nil, "t", nil, nil)))
	f.Add(truncate(1))
	f.Add(logical(true, 1, "p", "\xff"))
	ops := map[byte]change.Operation{'I': change.Insert, 'U': change.Update, 'D': change.Delete, 'T': change.Truncate, 'M': change.Message}
	d := NewDecoder()
	f.Fuzz(func(t *testing.T, raw []byte) {
		raw = exact(raw)
		c := change.Change{Relation: rel, Raw: raw}
		if len(raw) > 0 {
			c.Operation = ops[raw[0]]
		}
		saved := bytes.Clone(raw)
		before, after, _, err := decode(d, &c)
		if !bytes.Equal(raw, saved) {
			t.Fatal("the message was written to")
		}
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("error %v is not ErrMalformed", err)
			}
			return
		}
		for _, image := range [][]byte{before, after} {
			if image != nil && !json.Valid(image) {
				t.Fatalf("image is no JSON: %q", image)
			}
			// Escapes make at most six bytes of one.
			if len(image) > 6*len(raw)+100 {
				t.Fatalf("image of %d bytes from a message of %d", len(image), len(raw))
			}
		}
		// Whatever the message, decoding it takes memory only for its errors.
		dst := make([]byte, 0, 2*(6*len(raw)+100))
		if n := testing.AllocsPerRun(1, func() {
			if r, err := d.Decode(&c); err == nil {
				b, _ := r.AppendBefore(dst)
				r.AppendAfter(b)
			}
		}); n != 0 {
			t.Fatalf("%v allocations", n)
		}
	})
}
