package change_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

func TestLSNTextIsThatOfPostgres(t *testing.T) {
	for _, c := range []struct {
		lsn  change.LSN
		text string
	}{
		{0, "0/0"},
		{1, "0/1"},
		{0x16B374D848, "16/B374D848"},
		{0x1_0000_0000, "1/0"},
		{math.MaxUint64, "FFFFFFFF/FFFFFFFF"},
	} {
		if got := c.lsn.String(); got != c.text {
			t.Errorf("%#x: text %q, want %q", uint64(c.lsn), got, c.text)
		}
		if got, err := change.ParseLSN(c.text); err != nil || got != c.lsn {
			t.Errorf("parse %q: %#x, %v", c.text, uint64(got), err)
		}
	}
}

func TestLSNIsReadAsPostgresReadsIt(t *testing.T) {
	// As pg_lsn_in does: lower case and leading zeros are fine.
	for text, want := range map[string]change.LSN{
		"16/b374d848": 0x16B374D848, "00000016/0000000a": 0x16_0000000A,
	} {
		if got, err := change.ParseLSN(text); err != nil || got != want {
			t.Errorf("parse %q: %s, %v", text, got, err)
		}
	}
	for _, s := range []string{"", "/", "0", "0/", "/0", "0/0/0", "123456789/0", "0/123456789", " 0/0", "0/0 ", "0x1/0", "G/0", "-1/0", "+1/0", "1_0/0"} {
		if got, err := change.ParseLSN(s); err == nil {
			t.Errorf("parse %q: taken as %s", s, got)
		} else if !strings.Contains(err.Error(), "16/B374D848") {
			t.Errorf("parse %q: the error %q gives no example", s, err)
		}
	}
}

func TestLSNsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lsn := change.LSN(rapid.Uint64().Draw(t, "lsn"))
		b, err := json.Marshal(lsn)
		if err != nil {
			t.Fatal(err)
		}
		var back change.LSN
		if err := json.Unmarshal(b, &back); err != nil || back != lsn {
			t.Fatalf("%s came back as %s, %v", lsn, back, err)
		}
	})
}

func FuzzParseLSN(f *testing.F) {
	f.Add("16/B374D848")
	f.Add("0/0")
	f.Add("00000016/0000000a")
	f.Fuzz(func(t *testing.T, s string) {
		lsn, err := change.ParseLSN(s)
		if err != nil {
			return
		}
		if back, err := change.ParseLSN(lsn.String()); err != nil || back != lsn {
			t.Errorf("%q: %s came back as %s, %v", s, lsn, back, err)
		}
	})
}
