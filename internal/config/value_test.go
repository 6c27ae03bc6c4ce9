package config

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "17": 17, "1B": 1, "16MiB": 16 << 20, "256 MiB": 256 << 20, "1GB": 1e9, "3kB": 3000, "1TiB": 1 << 40,
	} {
		got, err := ParseSize(text)
		if err != nil || got != want {
			t.Errorf("%q is %d (%v), want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1.5GiB", "1 miB", "9999999TiB", "1MiB1"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("%q was read as %d", text, got)
		}
	}
}

func TestSizesPrintWhatParses(t *testing.T) {
	for _, s := range []Size{0, 1, 1023, 1024, 1 << 20, 3 << 30, 1e9} {
		if got, err := ParseSize(s.String()); err != nil || got != s {
			t.Errorf("%d prints as %s, which reads as %d (%v)", s, s, got, err)
		}
	}
}

func TestDurationsPrintWithoutEmptyUnits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 10 * time.Second: "10s", time.Minute: "1m", time.Hour: "1h", 90 * time.Minute: "1h30m", 61 * time.Second: "1m1s",
	} {
		if got := (durationValue{&d}).String(); got != want {
			t.Errorf("%d prints as %s, want %s", d, got, want)
		}
	}
}

func TestMaskHidesPasswordsAndNothingElse(t *testing.T) {
	for text, want := range map[string]string{
		"":                                         "",
		"postgres://me@db/shop?sslmode=require":    "postgres://me@db/shop?sslmode=require",
		"postgres://me:secret@db:5432/shop":        "postgres://me:xxxxx@db:5432/shop",
		"postgres://me:se/cr@et%zz@db/shop":        "postgres://me:xxxxx@db/shop",
		"postgres://:secret@db/shop":               "postgres://:xxxxx@db/shop",
		"postgres://db/shop?user=me&password=s%26": "postgres://db/shop?user=me&password=xxxxx",
		"postgres://db/?SSLPassword=x&a=b":         "postgres://db/?SSLPassword=xxxxx&a=b",
		"postgres://db:5432/shop?application=a@b":  "postgres://db:5432/shop?application=a@b",
		"host=db password=secret user=me":          "host=db password=xxxxx user=me",
		"host=db password = 'two words' user=me":   "host=db password = xxxxx user=me",
		`password='it\'s' user=me`:                 "password=xxxxx user=me",
		"password='never closed":                   "password=xxxxx",
		"password='never\nclosed":                  "password=xxxxx",
		"postgres://me:sec\nret@db/shop":           "postgres://me:xxxxx@db/shop",
		"me:sec:ret@db/shop":                       "me:xxxxx@db/shop",
		"postgres:/me:secret@db/shop":              "postgres:/me:xxxxx@db/shop",
		"host=db user=me@there":                    "host=db user=me@there",
		`password=a\ b user=me`:                    "password=xxxxx user=me",
		"s3://bucket/a:b@c":                        "s3://bucket/a:b@c",
	} {
		if got := Mask(text); got != want {
			t.Errorf("%s is shown as %s, want %s", text, got, want)
		}
	}
}

func TestAConfigAsJSONHasNoPassword(t *testing.T) {
	c, err := Load(Sources{Environ: []string{"TIDEMARK_POSTGRES_URL=postgres://me:hunter2@db/shop"}}, NeedPostgres)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "hunter2") || !strings.Contains(string(text), "me:xxxxx@db") {
		t.Errorf("shown as %s", text)
	}
}

func TestDidYouMean(t *testing.T) {
	known := []string{"lake.url", "log.level", "segment.max_rows"}
	for name, want := range map[string]string{
		"lake.ur": "; did you mean lake.url?", "Log.Level": "; did you mean log.level?",
		"max_rows": "; did you mean segment.max_rows?", "zebra": "",
	} {
		if got := didYouMean(name, known); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
