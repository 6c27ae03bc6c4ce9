package lake_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

func TestTheKeyIsWhatTheFormatSays(t *testing.T) {
	day, _ := change.ParseDay("2024-05-01")
	ref := segment.Ref{
		Day:   day,
		First: change.Position{Timeline: 1, LSN: 0x16B374D848, Ordinal: 0},
		Last:  change.Position{Timeline: 1, LSN: 0x16B374E000, Ordinal: 9999},
	}
	const want = "2024/05/01/00000001-00000016B374D848-0000000000_00000001-00000016B374E000-000000270F.zstd.parquet"
	if got := lake.Key(ref); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := lake.QuarantineKey(ref); got != "_quarantine/"+want {
		t.Errorf("got %s", got)
	}
	for _, key := range []string{
		"", "x", "_tidemark/ack.json",
		"/" + want, want + "x", strings.ToLower(want), "_quarantine/_quarantine/" + want,
		strings.Replace(want, "2024/05/01", "2024-05-01", 1),
		strings.Replace(want, "2024/05/01", "2024/13/01", 1),
		strings.Replace(want, "_", "-", 1),
		strings.Replace(want, ".zstd", ".gzip", 1),
		strings.Replace(want, "000000270F", "000000270f", 1),
		strings.Replace(want, "_00000001", "_00000000", 1), // last before first
	} {
		if p, err := lake.ParseKey(key); err == nil {
			t.Errorf("%q is read as %+v", key, p)
		}
	}
}

func genPosition() *rapid.Generator[change.Position] {
	return rapid.Custom(func(t *rapid.T) change.Position {
		return change.Position{
			Timeline: change.Timeline(rapid.Uint32Min(1).Draw(t, "timeline")),
			LSN:      change.LSN(rapid.Uint64().Draw(t, "lsn")),
			Ordinal:  rapid.Uint64Range(0, change.MaxOrdinal).Draw(t, "ordinal"),
		}
	})
}

func TestKeysAreReadBackAndSortAsPositionsDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := genPosition().Draw(t, "a"), genPosition().Draw(t, "b")
		if b.Less(a) {
			a, b = b, a
		}
		p := lake.KeyParts{
			Day:   change.Day(rapid.Int32Range(0, 100000).Draw(t, "day")),
			First: a, Last: b, Quarantined: rapid.Bool().Draw(t, "quarantined"),
		}
		if got, err := lake.ParseKey(p.Key()); err != nil || got != p {
			t.Fatalf("%s: %+v, %v, want %+v", p.Key(), got, err, p)
		}
		next := p
		next.First, next.Last = b, b
		if a != b && p.Key() >= next.Key() {
			t.Fatalf("%s stands behind %s", p.Key(), next.Key())
		}
	})
}

func FuzzParseKey(f *testing.F) {
	f.Add("2024/05/01/00000001-00000016B374D848-0000000000_00000001-00000016B374E000-000000270F.zstd.parquet")
	f.Add("_quarantine/2024/05/01/x")
	f.Fuzz(func(t *testing.T, key string) {
		if p, err := lake.ParseKey(key); err == nil && p.Key() != key {
			t.Errorf("%q is read as the key of %q", key, p.Key())
		}
	})
}
