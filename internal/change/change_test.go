package change_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

func TestOperationsAreTheWordsOfTheLake(t *testing.T) {
	for op, want := range map[change.Operation]string{
		change.Insert: "insert", change.Update: "update", change.Delete: "delete",
		change.Truncate: "truncate", change.Message: "message",
		0: "operation(0)", change.Message + 1: "operation(6)", 255: "operation(255)",
	} {
		if got := op.String(); got != want {
			t.Errorf("operation %d: %q, want %q", uint8(op), got, want)
		}
	}
}

func TestTimesOfTheProtocolCountFrom2000(t *testing.T) {
	for micros, want := range map[int64]string{
		0:                     "2000-01-01T00:00:00Z",
		-1:                    "1999-12-31T23:59:59.999999Z",
		762609600_000001:      "2024-03-01T12:00:00.000001Z",
		-946684800_000000:     "1970-01-01T00:00:00Z",
		-946684800_000000 - 1: "1969-12-31T23:59:59.999999Z",
	} {
		got := change.FromPostgres(micros)
		if s := got.UTC().Format(time.RFC3339Nano); s != want {
			t.Errorf("%d: %s, want %s", micros, s, want)
		}
		if back := change.TimeOf(got.UTC()); back != got {
			t.Errorf("%d: %d came back as %d", micros, got, back)
		}
	}
}

func TestDayIsTheUTCDay(t *testing.T) {
	for _, c := range []struct {
		at        string
		day, path string
	}{
		{"2024-02-29T23:59:59.999999Z", "2024-02-29", "2024/02/29"},
		{"2024-03-01T00:00:00Z", "2024-03-01", "2024/03/01"},
		// In another zone it is still the day before, or already the next.
		{"2024-03-01T00:30:00+02:00", "2024-02-29", "2024/02/29"},
		{"2024-02-29T23:30:00-02:00", "2024-03-01", "2024/03/01"},
		{"1970-01-01T00:00:00Z", "1970-01-01", "1970/01/01"},
		{"1969-12-31T23:59:59.999999Z", "1969-12-31", "1969/12/31"},
		{"1969-12-31T00:00:00Z", "1969-12-31", "1969/12/31"},
		{"1969-12-30T23:59:59.999999Z", "1969-12-30", "1969/12/30"},
		{"0999-01-02T00:00:00Z", "0999-01-02", "0999/01/02"},
	} {
		at, err := time.Parse(time.RFC3339Nano, c.at)
		if err != nil {
			t.Fatal(err)
		}
		d := change.TimeOf(at).Day()
		if d.String() != c.day || d.Path() != c.path {
			t.Errorf("%s: day %s in %s, want %s in %s", c.at, d, d.Path(), c.day, c.path)
		}
	}
}

func TestDayMatchesTheCalendarAndComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Years 0 to 9999, which are all that has four digits.
		at := change.Time(rapid.Int64Range(-62167219200_000000, 253402300799_999999).Draw(t, "time"))
		d := at.Day()
		if want := at.UTC().Format(time.DateOnly); d.String() != want {
			t.Fatalf("%s: day %s", at.UTC(), d)
		}
		b, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var back change.Day
		if err := json.Unmarshal(b, &back); err != nil || back != d {
			t.Fatalf("%s came back as %s, %v", d, back, err)
		}
	})
}

func TestWhatIsNoDayIsRefused(t *testing.T) {
	for _, s := range []string{"", "2024", "2024-2-1", "2024/03/01", "2023-02-29", "2024-13-01", "2024-03-01T00:00:00Z", " 2024-03-01", "20240301"} {
		if d, err := change.ParseDay(s); err == nil {
			t.Errorf("parse %q: taken as %s", s, d)
		}
	}
}

func FuzzParseDay(f *testing.F) {
	f.Add("2024-02-29")
	f.Add("1969-12-31")
	f.Add("0000-01-01")
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := change.ParseDay(s); err == nil && d.String() != s {
			t.Errorf("%q is taken for %s", s, d)
		}
	})
}

func TestRelationComesBackFromJSONWithEveryBitOfItsHash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := change.Relation{
			OID: rapid.Uint32().Draw(t, "oid"), Hash: rapid.OneOf(rapid.Just(uint64(math.MaxUint64)), rapid.Uint64()).Draw(t, "hash"),
			Namespace: rapid.String().Draw(t, "namespace"), Name: rapid.String().Draw(t, "name"),
			Identity: rapid.SampledFrom([]byte("dnfi")).Draw(t, "identity"),
			Columns:  []change.Column{{Name: rapid.String().Draw(t, "column"), Type: rapid.Uint32().Draw(t, "type"), Modifier: rapid.Int32().Draw(t, "modifier"), Key: rapid.Bool().Draw(t, "key")}},
			Types:    []change.Type{{OID: 9, Kind: change.KindDomain, Base: rapid.Uint32().Draw(t, "base"), Delimiter: rapid.Byte().Draw(t, "delimiter"), JSONCast: rapid.Bool().Draw(t, "cast")}},
		}
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var back change.Relation
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(back)
		if err != nil || string(again) != string(b) || back.Hash != r.Hash || back.Name != r.Name {
			t.Fatalf("%s came back as %s, %v", b, again, err)
		}
	})
}
