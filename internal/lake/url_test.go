package lake_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/lake"
)

func TestOneLakeHasOneURL(t *testing.T) {
	for in, want := range map[string]string{
		"s3://bucket":                  "s3://bucket",
		"s3://bucket/":                 "s3://bucket",
		"s3://bucket/a/b":              "s3://bucket/a/b",
		"s3://bucket/a/b/":             "s3://bucket/a/b",
		"s3://my.bucket-1/env=prod/x ": "s3://my.bucket-1/env=prod/x ",
		"file:///var/lib/lake":         "file:///var/lib/lake",
		"file:///var/lib/lake/":        "file:///var/lib/lake",
		"file:///var//lib/./x/../lake": "file:///var/lib/lake",
	} {
		if got, err := lake.Canonical(in); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", in, got, err, want)
		}
	}
}

func TestAURLThatIsNoLakeIsRefused(t *testing.T) {
	for in, says := range map[string]string{
		"":                         "want s3://",
		"bucket/prefix":            "want s3://",
		"gs://bucket/prefix":       `"gs" is not a kind of lake`,
		"s3://":                    "not the name of a bucket",
		"s3:///prefix":             "not the name of a bucket",
		"s3://b/x":                 "not the name of a bucket",
		"s3://bucket//x/../y":      "begins with a dot",
		"s3://bucket/a//b":         "empty",
		"s3://bucket/p?region=x":   `'?'`,
		"s3://bucket/p%20x":        `'%'`,
		"file://relative/path":     "absolute",
		"file:///":                 "root folder",
		"s3://AKIA:hush@bucket/p":  "user name or password",
		"file://me:hush@/srv/lake": "user name or password",
	} {
		_, err := lake.Canonical(in)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", in, err, says)
		}
		if err != nil && (strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "AKIA")) {
			t.Errorf("the error shows a credential: %v", err)
		}
	}
}

func TestEverySettingThatIsWrongIsNamedAtOnce(t *testing.T) {
	err := lake.Config{
		URL: "s3://bucket/p", Endpoint: "https://user:hush@minio:9000", Checksum: "md5", SSE: "rot13",
		KMSKeyID: "alias/k", StorageClass: "deep_archive", Timeout: -time.Second,
	}.Validate()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, says := range []string{"endpoint", "checksum", "encryption", "KMS key", "storage class", "timeout"} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("no word of the %s in: %v", says, err)
		}
	}
	if strings.Contains(err.Error(), "hush") {
		t.Errorf("the error shows a credential: %v", err)
	}
	for _, endpoint := range []string{"minio:9000", "ftp://minio", "http://", "http://h:\x01", "http://h?x=1"} {
		if err := (lake.Config{URL: "s3://bucket", Endpoint: endpoint}).Validate(); err == nil {
			t.Errorf("the endpoint %q is accepted", endpoint)
		}
	}
	for _, c := range []lake.Config{
		{URL: "s3://bucket"},
		{URL: "file:///srv/lake"},
		{URL: "s3://bucket/p", Endpoint: "http://127.0.0.1:9000", Checksum: "when_supported", SSE: "aws:kms", KMSKeyID: "alias/k", StorageClass: "STANDARD_IA", Timeout: time.Second},
	} {
		if err := c.Validate(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestOpenRefusesWhatValidateRefuses(t *testing.T) {
	if _, err := lake.Open(t.Context(), lake.Config{URL: "nowhere"}); err == nil {
		t.Error("opened")
	}
	l, err := lake.Open(t.Context(), lake.Config{URL: "file://" + t.TempDir() + "/x/"})
	if err != nil || strings.HasSuffix(l.URL(), "/") {
		t.Fatalf("%v, %v", l, err)
	}
	if err := l.Check(t.Context()); err != nil {
		t.Errorf("a folder that is to be made: %v", err)
	}
}
