package rowfile

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// What is read back is what was written: every field, and which changes have
// their table from the same announcement.
func TestARawFileComesBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		relations := []*change.Relation{nil}
		for i := range 3 {
			relations = append(relations, &change.Relation{
				OID: uint32(16384 + i/2), Hash: uint64(i / 2), Namespace: "public", Name: "t", Identity: 'd',
				Columns: []change.Column{{Name: "id", Type: 23, Modifier: -1, Key: true}},
			})
		}
		var changes []change.Change
		for i := range rapid.IntRange(1, 3000).Draw(rt, "rows") {
			c := change.Change{
				Position: change.Position{Timeline: 1, LSN: 0x1000, Ordinal: uint64(i)}, LSN: change.LSN(0x900 + i), XID: uint32(i) - 5,
				CommitTime: change.Time(-i), Received: change.Time(i), Operation: change.Operation(1 + i%5), Joined: i%7 == 0,
				Raw: bytes.Repeat([]byte{byte(i)}, i%40), Relation: relations[rapid.IntRange(0, 3).Draw(rt, "relation")],
			}
			changes = append(changes, c)
		}
		data, _ := write(t, true, Options{RowGroupBytes: 1 << 16}, changes)
		back, err := ReadRaw(data)
		if err != nil || len(back) != len(changes) {
			rt.Fatalf("%d of %d changes, %v", len(back), len(changes), err)
		}
		same := map[*change.Relation]*change.Relation{nil: nil}
		for i := range back {
			got, want := back[i], changes[i]
			if known, ok := same[want.Relation]; ok && known != got.Relation {
				rt.Fatalf("change %d has another announcement than one before", i)
			}
			same[want.Relation] = got.Relation
			if len(got.Raw) == 0 && len(want.Raw) == 0 {
				got.Raw, want.Raw = nil, nil
			}
			if !reflect.DeepEqual(got, want) {
				rt.Fatalf("change %d is %+v, was %+v", i, got, want)
			}
		}
		distinct := map[*change.Relation]bool{}
		for _, r := range same {
			distinct[r] = true
		}
		if len(distinct) != len(same) {
			rt.Fatalf("%d announcements have become %d", len(same), len(distinct))
		}
	})
}

func TestWhatIsNoRawFileIsRefused(t *testing.T) {
	rows, _ := write(t, false, Options{}, sample())
	raw, _ := write(t, true, Options{}, sample())
	cut := bytes.Clone(raw)
	for i := 4; i < len(cut)/3; i++ {
		cut[i] ^= 0x55
	}
	for name, body := range map[string][]byte{"nothing": nil, "text": []byte("hello"), "an object with rows": rows, "damaged": cut, "half": raw[:len(raw)/2]} {
		if changes, err := ReadRaw(body); !errors.Is(err, ErrNotRaw) {
			t.Errorf("%s: %d changes, %v", name, len(changes), err)
		}
	}
}
